//! What a file says about itself, and what it is called.

use std::time::Duration;

use crate::json::push_hex;

/// The first record of a file: who logs, which connection, when.
///
/// ```
/// use qlogs::{TraceHeader, VantagePoint};
/// let header = TraceHeader {
///     title: "min-cwnd-trap, seed 7".into(),
///     ..TraceHeader::new(VantagePoint::Client, vec![0xc0, 0xff, 0xee, 0, 0, 0, 0, 1])
/// };
/// assert!(header.reference_time.is_zero());
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceHeader {
    /// What a viewer shows in its list of traces: say what was played.
    pub title: String,
    /// The side that logs.
    pub vantage_point: VantagePoint,
    /// The destination connection ID of the client's first packet, the same for both sides and not
    /// changed by a Retry; it becomes the trace's `group_id`.
    pub odcid: Vec<u8>,
    /// What the times of the events count from, as the time since 1970-01-01 00:00 UTC. Zero in
    /// virtual time, so that equal runs give equal files.
    pub reference_time: Duration,
    /// The program, its version and what else tells one trace from another, such as the controller;
    /// it becomes the name of the vantage point.
    pub code_version: String,
    /// How much of an IP address is written.
    pub addresses: AddressDetail,
}

impl TraceHeader {
    /// A header with the crate's version, no title, reference time zero and shortened addresses.
    pub fn new(vantage_point: VantagePoint, odcid: Vec<u8>) -> Self {
        Self {
            title: String::new(),
            vantage_point,
            odcid,
            reference_time: Duration::ZERO,
            code_version: concat!("tidegate ", env!("CARGO_PKG_VERSION")).into(),
            addresses: AddressDetail::default(),
        }
    }
}

/// The side that logs.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum VantagePoint {
    /// The side that opened the connection.
    Client,
    /// The side that accepted it.
    Server,
}

impl VantagePoint {
    /// The word qlog uses for this side.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// How much of an IP address a file shows (main-schema-05, the section on privacy).
#[derive(Copy, Clone, PartialEq, Eq, Default, Hash, Debug)]
pub enum AddressDetail {
    /// The whole address.
    Full,
    /// The network only: 24 bits of an IPv4 address, 48 of an IPv6 address, zeros after them.
    #[default]
    Prefix,
    /// Neither address nor port.
    Omitted,
}

/// The name of the file for one side of a connection: the original destination connection ID, the
/// side, and the extension that tells viewers the format.
///
/// ```
/// use qlogs::{VantagePoint, file_name};
/// assert_eq!(file_name(&[0xab, 0x01], VantagePoint::Client), "ab01_client.sqlog");
/// ```
pub fn file_name(odcid: &[u8], vantage: VantagePoint) -> String {
    format!("{}.sqlog", file_stem(odcid, vantage))
}

/// [`file_name`] without its extension.
pub(crate) fn file_stem(odcid: &[u8], vantage: VantagePoint) -> String {
    let mut hex = Vec::with_capacity(2 * odcid.len());
    push_hex(&mut hex, odcid);
    format!("{}_{}", String::from_utf8_lossy(&hex), vantage.as_str())
}
