//! The reflector against servers whose every answer is written down. Time is paused, so that waits cost nothing. Against
//! the real server it runs in the tests of the program `revisor`.

mod reflector;
mod scripted;
