//! Where a session without cryptography may be used, and where not.

use std::net::{Ipv4Addr, SocketAddr};

use super::{ALPN, config, tls_pair};
use crate::{
    config::{ClientConfig, ServerConfig},
    error::ConfigError,
    net::{self, BindError},
};

/// Not in a runtime: the answer comes before any socket is opened.
#[test]
fn no_socket_takes_a_session_without_cryptography() {
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let (tls_server, tls_client) = tls_pair();
    let (server, client) = (
        ServerConfig::unprotected(&[ALPN]),
        ClientConfig::unprotected(&[ALPN]),
    );
    for (client, server) in [
        (None, Some(server.clone())),
        (Some(client.clone()), None),
        (Some(tls_client), Some(server)),
        (Some(client), Some(tls_server)),
    ] {
        let refused = net::bind(local, config(1), client, server);
        assert!(matches!(
            refused,
            Err(BindError::Config(ConfigError::Unprotected))
        ));
    }
}
