//! Files on disk: their names, and what happens when a disk misbehaves.

use std::fs;
use std::io::{self, Write as _};

use qlogs::{Event, TraceHeader, VantagePoint, Writer, create_in, file_name};
use units::Timestamp;

const ODCID: [u8; 8] = [0xc0, 0xff, 0xee, 0x00, 0x01, 0x02, 0x03, 0xa4];

#[test]
fn a_file_is_named_after_connection_and_side() {
    assert_eq!(
        file_name(&ODCID, VantagePoint::Client),
        "c0ffee00010203a4_client.sqlog"
    );
    assert_eq!(
        file_name(&[0x00, 0x0f], VantagePoint::Server),
        "000f_server.sqlog"
    );
}

#[test]
fn a_missing_directory_is_created() {
    let root = tempfile::tempdir().expect("a directory");
    let dir = root.path().join("logs").join("today");
    let (_, path) = create_in(&dir, &ODCID, VantagePoint::Client).expect("a file");
    assert_eq!(path, dir.join("c0ffee00010203a4_client.sqlog"));
    assert!(path.is_file());
}

#[test]
fn an_existing_file_is_neither_overwritten_nor_continued() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut names = Vec::new();
    for content in ["first", "second", "third"] {
        let (mut file, path) = create_in(dir.path(), &ODCID, VantagePoint::Server).expect("a file");
        file.write_all(content.as_bytes())
            .expect("room on the disk");
        assert_eq!(fs::read_to_string(&path).expect("readable"), content);
        names.push(path.file_name().expect("a name").to_owned());
    }
    assert_eq!(
        names,
        [
            "c0ffee00010203a4_server.sqlog",
            "c0ffee00010203a4_server-1.sqlog",
            "c0ffee00010203a4_server-2.sqlog",
        ]
    );
    assert_eq!(
        fs::read_to_string(dir.path().join(&names[0])).expect("readable"),
        "first"
    );
    let (_, client) = create_in(dir.path(), &ODCID, VantagePoint::Client).expect("a file");
    assert!(
        client.ends_with("c0ffee00010203a4_client.sqlog"),
        "the other side has its own name"
    );
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_a_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().expect("a directory");
    let (file, _) = create_in(dir.path(), &[1], VantagePoint::Client).expect("a file");
    assert_eq!(
        file.metadata().expect("metadata").permissions().mode() & 0o777,
        0o600
    );
}

#[test]
fn a_path_that_is_no_directory_is_an_error() {
    let dir = tempfile::tempdir().expect("a directory");
    let in_the_way = dir.path().join("file");
    fs::write(&in_the_way, "").expect("a file");
    assert!(create_in(&in_the_way, &[1], VantagePoint::Client).is_err());
}

#[test]
fn a_writer_that_is_dropped_leaves_a_whole_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let (file, path) = create_in(dir.path(), &[1], VantagePoint::Client).expect("a file");
    let mut writer = Writer::new(file, &header()).expect("a header");
    writer.write(Timestamp::ZERO, &marker());
    drop(writer);
    let text = fs::read_to_string(path).expect("readable");
    assert_eq!(text.lines().count(), 2);
    assert!(text.ends_with("}\n"));
}

#[test]
fn records_reach_the_sink_in_large_pieces_and_complete() {
    let mut writer = Writer::new(Disk::with_room(usize::MAX), &header()).expect("a header");
    for n in 0..10_000 {
        writer.write(Timestamp::from_micros(n), &marker());
    }
    let disk = writer.finish().expect("no error");
    assert_eq!(
        disk.content.iter().filter(|&&byte| byte == b'\n').count(),
        10_001
    );
    let (header, body) = disk.pieces.split_first().expect("pieces");
    assert!(*header < 1_024, "the header is written at once");
    let (_, full) = body.split_last().expect("pieces");
    assert!(full.len() >= 5, "{} pieces", full.len());
    assert!(
        full.iter().all(|&piece| (65_536..70_000).contains(&piece)),
        "{full:?}"
    );
    assert_eq!(disk.flushes, 1);
}

#[test]
fn flushing_hands_over_what_there_is() {
    let mut writer = Writer::new(Disk::with_room(usize::MAX), &header()).expect("a header");
    writer.write(Timestamp::ZERO, &marker());
    writer.flush();
    assert!(writer.error().is_none());
    assert_eq!(writer.finish().expect("no error").pieces.len(), 2);
}

#[test]
fn a_disk_that_is_full_from_the_start_is_reported_at_once() {
    let error = Writer::new(Disk::with_room(10), &header()).expect_err("no room");
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}

#[test]
fn the_first_error_is_kept_and_nothing_is_written_after_it() {
    let mut disk = Disk::with_room(100_000);
    let mut writer = Writer::new(&mut disk, &header()).expect("a header");
    while writer.error().is_none() {
        writer.write(Timestamp::ZERO, &marker());
    }
    let lost_with_the_piece = writer.dropped_count();
    assert!(lost_with_the_piece > 100, "{lost_with_the_piece}");
    for _ in 0..1_000 {
        writer.write(Timestamp::ZERO, &marker());
    }
    writer.flush();
    assert_eq!(writer.dropped_count(), lost_with_the_piece + 1_000);
    let error = writer
        .finish()
        .map(|_| ())
        .expect_err("the error of the past");
    assert_eq!(error.to_string(), "full, attempt 1");
    assert_eq!(
        disk.content.len(),
        100_000,
        "what fitted is there, and nothing after it"
    );
}

#[test]
fn an_error_at_the_very_end_is_reported_too() {
    let mut writer = Writer::new(Disk::with_room(1_000), &header()).expect("a header");
    for _ in 0..10 {
        writer.write(Timestamp::ZERO, &marker());
    }
    assert!(writer.error().is_none());
    assert_eq!(
        writer.finish().map(|_| ()).expect_err("no room").kind(),
        io::ErrorKind::StorageFull
    );
}

#[test]
fn an_error_while_flushing_is_reported() {
    let disk = Disk {
        fails_to_flush: true,
        ..Disk::with_room(usize::MAX)
    };
    let writer = Writer::new(disk, &header()).expect("a header");
    assert_eq!(
        writer
            .finish()
            .map(|_| ())
            .expect_err("no flush")
            .to_string(),
        "no flush"
    );
}

fn header() -> TraceHeader {
    TraceHeader::new(VantagePoint::Server, ODCID.to_vec())
}

fn marker() -> Event {
    Event::Marker {
        message: "a message of some length, so that pieces fill up soon".into(),
    }
}

/// Takes so many bytes and no more, and remembers in which pieces.
#[derive(Debug)]
struct Disk {
    room: usize,
    content: Vec<u8>,
    pieces: Vec<usize>,
    flushes: usize,
    refusals: usize,
    fails_to_flush: bool,
}

impl Disk {
    fn with_room(room: usize) -> Self {
        Self {
            room,
            content: Vec::new(),
            pieces: Vec::new(),
            flushes: 0,
            refusals: 0,
            fails_to_flush: false,
        }
    }
}

impl io::Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.room - self.content.len());
        if taken == 0 {
            self.refusals += 1;
            let text = format!("full, attempt {}", self.refusals);
            return Err(io::Error::new(io::ErrorKind::StorageFull, text));
        }
        self.content.extend_from_slice(&bytes[..taken]);
        self.pieces.push(taken);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flushes += 1;
        if self.fails_to_flush {
            Err(io::Error::other("no flush"))
        } else {
            Ok(())
        }
    }
}
