//! [`Channel`]: what carries the requests of one client, one at a time: a connection of its own, or its share of one that
//! speaks HTTP/2.

use std::sync::Arc;

use anyhow::Result;
use h2::RecvStream;
use tokio::sync::Mutex;

use crate::Endpoint;
use crate::connection::{Connection, Connector, Request};
use crate::http::Body;
use crate::http2::{self, Http2Client};

/// Opens channels to one server.
#[derive(Clone)]
pub(crate) struct Channels {
    connector: Connector,
    shared: Option<Arc<Shared>>,
}

/// The HTTP/2 connection that is being filled.
struct Shared {
    /// How many channels share one.
    streams: u32,
    filling: Mutex<Option<(Http2Client, u32)>>,
}

impl Channels {
    /// Channels to this server. With `streams` they speak HTTP/2, and as many share a connection.
    pub(crate) fn new(endpoint: Endpoint, streams: Option<u32>) -> Result<Channels> {
        let Some(streams) = streams else { return Ok(Channels { connector: Connector::new(endpoint)?, shared: None }) };
        let connector = Connector::speaking(endpoint, http2::PROTOCOL)?;
        Ok(Channels { connector, shared: Some(Arc::new(Shared { streams, filling: Mutex::default() })) })
    }

    /// One more channel.
    pub(crate) async fn open(&self) -> Result<Channel> {
        let Some(shared) = &self.shared else {
            let (connector, connection) = (self.connector.clone(), Box::new(self.connector.connect().await?));
            return Ok(Channel::Http1 { connector, connection, request: Vec::new(), body: Body::Done });
        };
        let mut filling = shared.filling.lock().await;
        let (client, free) = match filling.take() {
            Some((client, free)) if free > 0 => (client, free),
            _ => (Http2Client::connect(&self.connector).await?, shared.streams),
        };
        *filling = Some((client.clone(), free - 1));
        Ok(Channel::Http2 { client, body: None })
    }
}

/// Carries requests, one at a time.
pub(crate) enum Channel {
    /// A connection of its own.
    Http1 { connector: Connector, connection: Box<Connection>, request: Vec<u8>, body: Body },
    /// A share of one.
    Http2 { client: Http2Client, body: Option<RecvStream> },
}

impl Channel {
    /// Sends a request and gives the body of its answer to `sink`. An answer that is no success is an error.
    pub(crate) async fn call(&mut self, request: &Request<'_>, sink: &mut impl FnMut(&[u8])) -> Result<()> {
        self.open(request).await?;
        while self.read(sink).await? {}
        Ok(())
    }

    /// Sends a request and reads the head of its answer. The caller reads the body, which may have no end.
    pub(crate) async fn open(&mut self, request: &Request<'_>) -> Result<()> {
        match self {
            Channel::Http1 { connector, connection, request: bytes, body } => {
                connector.request(bytes, request);
                *body = connection.open(bytes).await?;
            }
            Channel::Http2 { client, body } => *body = Some(client.open(request).await?),
        }
        Ok(())
    }

    /// Reads what is there of the body, waiting if nothing is; whether there may be more.
    pub(crate) async fn read(&mut self, sink: &mut impl FnMut(&[u8])) -> Result<bool> {
        match self {
            Channel::Http1 { connection, body, .. } => {
                if *body != Body::Done {
                    connection.read_body(body, sink).await?;
                }
                Ok(*body != Body::Done)
            }
            Channel::Http2 { body: Some(body), .. } => http2::read(body, sink).await,
            Channel::Http2 { body: None, .. } => Ok(false),
        }
    }
}
