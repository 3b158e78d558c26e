//! Server and client together: over real UDP on loopback, through their command lines, and in
//! virtual time.

mod command_line;
mod support;
mod transfer;
mod virtual_time;
