//! An HTTP/3 download server.
