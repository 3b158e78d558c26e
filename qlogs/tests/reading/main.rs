//! Files are read back: ours, those of other programs, and what is left of broken ones.

use std::io::Write as _;

use qlogs::Writer;
use qlogs::read::event::{Event, Frame, PacketId};
use qlogs::read::{Container, Fault, FaultKind, Reader, Record, TimeFormat};
use serde_json::Value;
use units::{ByteCount, Timestamp};

mod compared;
#[path = "../events/mod.rs"]
mod events;
mod mutations;
mod others;

/// Our sample file: every event and every frame once.
fn ours() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &events::header()).expect("a vector takes all");
    for (at, event) in events::story() {
        writer.write(at, &event);
    }
    writer.finish().expect("a vector takes all")
}

/// The records that can be read, and what ended the reading.
#[track_caller]
fn read(file: &[u8]) -> (Vec<Record>, Option<Fault>) {
    let mut records = Vec::new();
    let reader = match Reader::new(file) {
        Ok(reader) => reader,
        Err(fault) => return (records, Some(fault)),
    };
    for record in reader {
        match record {
            Ok(record) => records.push(record),
            Err(fault) => return (records, Some(fault)),
        }
    }
    (records, None)
}

#[track_caller]
fn whole(file: &[u8]) -> Vec<Record> {
    let (records, fault) = read(file);
    assert_eq!(fault, None);
    records
}

#[test]
fn what_was_written_is_read() {
    let file = ours();
    let mut reader = Reader::new(file.as_slice()).expect("a file");
    let header = reader.header();
    assert_eq!(header.version.as_deref(), Some("0.3"));
    assert_eq!(header.format.as_deref(), Some("JSON-SEQ"));
    assert_eq!(header.group_id.as_deref(), Some("c0ffee00010203a4"));
    assert_eq!(header.vantage_point, Some(qlogs::VantagePoint::Server));
    assert_eq!(header.time, TimeFormat::Relative);
    assert_eq!(reader.container(), Container::Sequence);
    let first = reader.next().expect("an event").expect("whole");
    assert_eq!(first.name, "connectivity:connection_started");

    let records = whole(&file);
    let lines: Vec<&[u8]> = file.split_inclusive(|byte| *byte == b'\n').collect();
    assert_eq!(records.len(), lines.len() - 1);
    let mut offset = 0;
    for (number, line) in (1_u64..).zip(&lines) {
        if let Some(record) = records.iter().find(|record| record.number == number) {
            assert_eq!(record.offset, offset + 1, "behind its separator");
            let written: Value = serde_json::from_slice(&line[1..]).expect("JSON");
            assert_eq!(record.data, written["data"]);
            assert_eq!(record.written_name, written["name"]);
        }
        offset += line.len() as u64;
    }
    let story = events::story();
    let instants: Vec<Timestamp> = records.iter().map(|record| record.at).collect();
    assert!(instants.is_sorted());
    assert_eq!(
        instants.last(),
        story.last().map(|(at, _)| at),
        "to the nanosecond"
    );
}

#[test]
fn compressed_files_are_read_too() {
    let file = ours();
    let plain = whole(&file);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&file).expect("a vector takes all");
    let gzip = gzip.finish().expect("a vector takes all");
    let zstd = ruzstd::encoding::compress_to_vec(
        file.as_slice(),
        ruzstd::encoding::CompressionLevel::Fastest,
    );
    for compressed in [&gzip, &zstd] {
        assert_ne!(&compressed[..], &file[..]);
        assert_eq!(whole(compressed), plain);
        let (records, fault) = read(&compressed[..compressed.len() * 2 / 3]);
        let fault = fault.expect("it was cut");
        assert!(records.len() < plain.len());
        assert!(matches!(fault.kind, FaultKind::Io(_)), "{fault}");
    }
}

#[test]
fn the_container_does_not_matter() {
    let file = ours();
    let sequence = whole(&file);
    let lines: Vec<u8> = file.iter().copied().filter(|byte| *byte != 0x1e).collect();
    let mut records: Vec<Value> = lines
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).expect("JSON"))
        .collect();
    let mut head = records.remove(0);
    head["qlog_format"] = "JSON".into();
    let mut alone = head.clone();
    alone["trace"]["events"] = records.into();
    let mut document = head;
    document["traces"] = vec![alone["trace"].clone()].into();
    document.as_object_mut().expect("an object").remove("trace");
    let pretty = serde_json::to_vec_pretty(&document).expect("JSON");
    let with_mark = [&[0xef, 0xbb, 0xbf], file.as_slice()].concat();
    for other in [
        lines,
        alone.to_string().into_bytes(),
        document.to_string().into_bytes(),
        pretty,
        with_mark,
    ] {
        let read = whole(&other);
        assert_eq!(read.len(), sequence.len());
        for (one, two) in read.iter().zip(&sequence) {
            assert_eq!((one.number, one.at), (two.number, two.at));
            assert_eq!((&one.name, &one.data), (&two.name, &two.data));
        }
    }
}

#[test]
fn a_cut_file_is_read_up_to_the_cut() {
    let file = ours();
    let all = whole(&file);
    let last = all.last().expect("events").offset;
    let cut = usize::try_from(last).expect("small") + 20;
    let (records, fault) = read(&file[..cut]);
    assert_eq!(records, all[..all.len() - 1]);
    let fault = fault.expect("it is cut");
    assert_eq!(fault.kind, FaultKind::Truncated);
    assert_eq!((fault.record, fault.offset), (all.len() as u64 + 1, last));
    let line = format!(
        "record {}, byte {last}: the file ends in the middle of a record",
        all.len() + 1
    );
    assert_eq!(fault.to_string(), line);
}

#[test]
fn a_broken_record_ends_the_reading_at_its_place() {
    let file = ours();
    let all = whole(&file);
    let broken = &all[4];
    let mut damaged = file;
    damaged[usize::try_from(broken.offset).expect("small")] = b'#';
    let (records, fault) = read(&damaged);
    assert_eq!(records, all[..4]);
    let fault = fault.expect("it is broken");
    assert_eq!((fault.record, fault.offset), (broken.number, broken.offset));
    assert!(
        fault.to_string().contains("not JSON: expected value"),
        "{fault}"
    );
}

#[test]
fn what_is_no_qlog_is_told() {
    for (file, kind) in [
        (&b""[..], FaultKind::Empty),
        (b" \n", FaultKind::Empty),
        (b"\x1e", FaultKind::Empty),
        (b"PK\x03\x04", FaultKind::NotQlog),
        (b"[1,2]", FaultKind::NotQlog),
    ] {
        let (records, fault) = read(file);
        assert_eq!(records, []);
        assert_eq!(fault.map(|fault| fault.kind), Some(kind), "{file:?}");
    }
}

#[test]
fn a_record_without_end_takes_no_memory() {
    let endless = [
        b"\x1e{\"qlog_version\":\"0.3\",\"title\":\"",
        &[b'x'; 3 << 20][..],
    ]
    .concat();
    let document = [b"{\"qlog_version\":\"", &[b'x'; 3 << 20][..]].concat();
    for file in [endless, document] {
        let (_, fault) = read(&file);
        let fault = fault.expect("too long");
        assert_eq!(fault.kind, FaultKind::TooLong { limit: 1 << 20 });
        assert!(
            fault
                .to_string()
                .ends_with("longer than 1048576 bytes, the limit")
        );
    }
}

/// The packet events of a file, as `kind number length` and the like.
fn packets(file: &[u8]) -> Vec<(PacketId, Option<ByteCount>, Vec<Frame>)> {
    let mut reader = Reader::new(file).expect("a file");
    let mut packets = Vec::new();
    while let Some(record) = reader.next() {
        let record = record.expect("whole");
        if let Event::PacketSent(packet) | Event::PacketReceived(packet) =
            Event::of(&record, reader.header())
        {
            let frames = packet.frames().to_vec();
            packets.push((packet.id.expect("a number"), packet.length, frames));
        }
    }
    packets
}

#[test]
fn every_event_is_understood() {
    let file = ours();
    let mut reader = Reader::new(file.as_slice()).expect("a file");
    let mut kinds = std::collections::BTreeSet::new();
    while let Some(record) = reader.next() {
        let record = record.expect("whole");
        let event = Event::of(&record, reader.header());
        if event != Event::Other {
            kinds.insert(record.name);
        }
    }
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    assert_eq!(
        kinds,
        [
            "connectivity:connection_closed",
            "connectivity:connection_state_updated",
            "recovery:congestion_state_updated",
            "recovery:metrics_updated",
            "recovery:packet_lost",
            "recovery:parameters_set",
            "transport:packet_received",
            "transport:packet_sent",
            "transport:parameters_set",
        ]
    );
}
