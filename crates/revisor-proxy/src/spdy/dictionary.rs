//! What both sides of SPDY/3.1 know before the first header is compressed (section 2.6.10.1 of its third draft).

use bytes::BufMut;

/// Words that headers often have. Each stands behind its length.
const WORDS: &str = "options,head,post,put,delete,trace,accept,accept-charset,accept-encoding,accept-language,\
    accept-ranges,age,allow,authorization,cache-control,connection,content-base,content-encoding,\
    content-language,content-length,content-location,content-md5,content-range,content-type,date,etag,\
    expect,expires,from,host,if-match,if-modified-since,if-none-match,if-range,if-unmodified-since,\
    last-modified,location,max-forwards,pragma,proxy-authenticate,proxy-authorization,range,referer,\
    retry-after,server,te,trailer,transfer-encoding,upgrade,user-agent,vary,via,warning,\
    www-authenticate,method,get,status,200 OK,version,HTTP/1.1,url,public,set-cookie,keep-alive,origin";

/// What stands behind them as it is.
const REST: &str = "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505\
    203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request\
    401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error\
    501 Not Implemented503 Service Unavailable\
    Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 \
    Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT\
    chunked,text/html,image/png,image/jpg,image/gif,\
    application/xml,application/xhtml+xml,text/plain,text/javascript,\
    publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

/// The dictionary that headers are packed with.
pub fn dictionary() -> Vec<u8> {
    let mut dictionary = Vec::new();
    for word in WORDS.split(',') {
        dictionary.put_u32(word.len() as u32);
        dictionary.put_slice(word.as_bytes());
    }
    dictionary.put_slice(REST.as_bytes());
    dictionary
}
