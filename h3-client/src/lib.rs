//! HTTP/3 downloads.
