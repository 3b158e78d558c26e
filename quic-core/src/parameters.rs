//! Reads transport parameters (RFC 9000 section 18) back from their encoding: quinn-proto keeps the
//! fields of its own type to itself, but writes them out.

/// The parameters that the sender or the log needs; absent ones keep their defaults
/// (RFC 9000 section 18.2).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parameters {
    pub(crate) max_idle_timeout_ms: Option<u64>,
    pub(crate) max_udp_payload_size_bytes: Option<u64>,
    pub(crate) initial_max_data_bytes: Option<u64>,
    pub(crate) initial_max_stream_data_bidi_local_bytes: Option<u64>,
    pub(crate) initial_max_stream_data_bidi_remote_bytes: Option<u64>,
    pub(crate) initial_max_stream_data_uni_bytes: Option<u64>,
    pub(crate) initial_max_streams_bidi: Option<u64>,
    pub(crate) initial_max_streams_uni: Option<u64>,
    pub(crate) ack_delay_exponent: Option<u64>,
    pub(crate) max_ack_delay_ms: Option<u64>,
    pub(crate) active_connection_id_limit: Option<u64>,
}

/// Reads what is there; a malformed rest is left out (quinn-proto has already accepted the whole).
pub(crate) fn parse(mut bytes: &[u8]) -> Parameters {
    let mut out = Parameters::default();
    while let Some((id, value)) = next(&mut bytes) {
        let field = match id {
            0x01 => &mut out.max_idle_timeout_ms,
            0x03 => &mut out.max_udp_payload_size_bytes,
            0x04 => &mut out.initial_max_data_bytes,
            0x05 => &mut out.initial_max_stream_data_bidi_local_bytes,
            0x06 => &mut out.initial_max_stream_data_bidi_remote_bytes,
            0x07 => &mut out.initial_max_stream_data_uni_bytes,
            0x08 => &mut out.initial_max_streams_bidi,
            0x09 => &mut out.initial_max_streams_uni,
            0x0a => &mut out.ack_delay_exponent,
            0x0b => &mut out.max_ack_delay_ms,
            0x0e => &mut out.active_connection_id_limit,
            _ => continue,
        };
        *field = varint(&mut { value });
    }
    out
}

fn next<'a>(bytes: &mut &'a [u8]) -> Option<(u64, &'a [u8])> {
    let id = varint(bytes)?;
    let length = usize::try_from(varint(bytes)?).ok()?;
    let value = bytes.get(..length)?;
    *bytes = &bytes[length..];
    Some((id, value))
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let first = *bytes.first()?;
    let length = 1usize << (first >> 6);
    let value = bytes
        .get(1..length)?
        .iter()
        .fold(u64::from(first & 0x3f), |value, &byte| {
            value << 8 | u64::from(byte)
        });
    *bytes = &bytes[length..];
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_parameters_are_read_and_unknown_ones_skipped() {
        let bytes = [
            0x01, 0x02, 0x40, 0x64, // max_idle_timeout 100
            0x3f, 0x01, 0xaa, // unknown
            0x0b, 0x01, 0x19, // max_ack_delay 25
        ];
        let parameters = parse(&bytes);
        assert_eq!(parameters.max_idle_timeout_ms, Some(100));
        assert_eq!(parameters.max_ack_delay_ms, Some(25));
        assert_eq!(parameters.ack_delay_exponent, None);
    }

    #[test]
    fn a_cut_encoding_gives_what_can_be_read() {
        assert_eq!(
            parse(&[0x0b, 0x01, 0x19, 0x01, 0x08, 0x00]).max_ack_delay_ms,
            Some(25)
        );
        assert_eq!(parse(&[0xff]), Parameters::default());
    }
}
