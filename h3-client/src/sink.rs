//! Where a body goes. Nothing carries the name asked for before it is complete.

use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use units::ByteCount;

/// Takes a body in pieces.
///
/// The calls come in this order: `begin` once the response is good, `write` for each piece, then
/// either `finish`, when length and checksum are right, or `abandon`. `abandon` may also come
/// first of all.
pub trait Sink: Send {
    /// A body of `size` follows; `None` if the server has not said.
    ///
    /// # Errors
    /// It cannot be stored.
    fn begin(&mut self, size: Option<ByteCount>) -> io::Result<()> {
        let _ = size;
        Ok(())
    }

    /// Takes the next piece.
    ///
    /// # Errors
    /// It cannot be stored.
    fn write(&mut self, data: Bytes) -> io::Result<()>;

    /// The body is complete and right: presents it as such.
    ///
    /// # Errors
    /// The last step of storing it failed.
    fn finish(&mut self) -> io::Result<()>;

    /// The body is not what was asked for. Gives the place where the bytes are kept, if any are.
    fn abandon(&mut self, why: Abandoned) -> Option<PathBuf> {
        let _ = why;
        None
    }

    /// The place in words, for messages.
    fn name(&self) -> String;
}

/// Why a body is not presented.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Abandoned {
    /// Bytes are missing.
    Incomplete,
    /// All bytes came, and their checksum is wrong.
    BadChecksum,
}

/// A file. While it is written it is `NAME.part`; `finish` renames it, replacing what had the name.
/// An incomplete one stays `NAME.part`, one with a wrong checksum becomes `NAME.bad`. What is no
/// file, such as `/dev/null` or a pipe, is written to directly and never replaced.
///
/// Writing blocks the task that downloads: the page cache takes a piece in microseconds, and a
/// disk that is slower than the network has to slow the download down anyway.
#[derive(Debug)]
pub struct FileSink {
    path: PathBuf,
    part: PathBuf,
    file: Option<File>,
    written: u64,
    /// A device or pipe.
    is_direct: bool,
}

impl FileSink {
    /// A file at `path`. Nothing is created before the body begins.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self {
            part: with_suffix(&path, ".part"),
            path,
            file: None,
            written: 0,
            is_direct: false,
        }
    }

    /// The name the complete file gets.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Sink for FileSink {
    fn begin(&mut self, _size: Option<ByteCount>) -> io::Result<()> {
        let kind = fs::metadata(&self.path).map(|metadata| metadata.file_type());
        if kind.as_ref().is_ok_and(FileType::is_dir) {
            return Err(io::Error::new(
                io::ErrorKind::IsADirectory,
                "it is a directory",
            ));
        }
        self.is_direct = kind.is_ok_and(|kind| !kind.is_file());
        self.file = Some(if self.is_direct {
            OpenOptions::new().write(true).open(&self.path)?
        } else {
            open_part(&self.part)?
        });
        Ok(())
    }

    fn write(&mut self, data: Bytes) -> io::Result<()> {
        let file = self.file.as_mut().ok_or_else(not_begun)?;
        file.write_all(&data)?;
        self.written += data.len() as u64;
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        let mut file = self.file.take().ok_or_else(not_begun)?;
        file.flush()?;
        if self.is_direct {
            return Ok(());
        }
        // The file stays open, and locked, until it has its name.
        fs::rename(&self.part, &self.path)
    }

    fn abandon(&mut self, why: Abandoned) -> Option<PathBuf> {
        self.file.take()?;
        if self.is_direct {
            return None;
        }
        if self.written == 0 {
            // Nothing worth keeping; an empty file would only look like something.
            let _ = fs::remove_file(&self.part);
            return None;
        }
        if why == Abandoned::BadChecksum {
            let bad = with_suffix(&self.path, ".bad");
            if fs::rename(&self.part, &bad).is_ok() {
                return Some(bad);
            }
        }
        Some(self.part.clone())
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }
}

/// Any writer, such as standard output. What was written cannot be taken back.
#[derive(Debug)]
pub struct WriteSink<W> {
    writer: W,
    name: String,
    is_terminal: bool,
}

impl WriteSink<io::Stdout> {
    /// Standard output. On a terminal, binary data is refused.
    pub fn stdout() -> Self {
        let writer = io::stdout();
        let is_terminal = writer.is_terminal();
        Self {
            writer,
            name: "standard output".into(),
            is_terminal,
        }
    }
}

impl<W: Write + Send> WriteSink<W> {
    /// `writer`, called `name` in messages.
    pub fn new(writer: W, name: impl Into<String>) -> Self {
        Self {
            writer,
            name: name.into(),
            is_terminal: false,
        }
    }
}

impl<W: Write + Send> Sink for WriteSink<W> {
    fn write(&mut self, data: Bytes) -> io::Result<()> {
        if self.is_terminal && data.contains(&0) {
            return Err(io::Error::other(
                "binary data would garble the terminal; redirect it, or name a file with --output",
            ));
        }
        self.writer.write_all(&data)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.writer.flush()
    }

    fn abandon(&mut self, _why: Abandoned) -> Option<PathBuf> {
        let _ = self.writer.flush();
        None
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

/// Counts the bytes and drops them.
#[derive(Debug, Default)]
pub struct CountingSink {
    received: u64,
    is_complete: bool,
}

impl CountingSink {
    /// What came so far.
    pub const fn received(&self) -> ByteCount {
        ByteCount::new(self.received)
    }

    /// Whether that is all.
    pub const fn is_complete(&self) -> bool {
        self.is_complete
    }
}

impl Sink for CountingSink {
    fn write(&mut self, data: Bytes) -> io::Result<()> {
        self.received += data.len() as u64;
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.is_complete = true;
        Ok(())
    }

    fn name(&self) -> String {
        "nowhere".into()
    }
}

/// Opens `NAME.part` for this download alone, empty. What an earlier, unfinished download left there
/// is overwritten.
///
/// # Errors
/// Another download is writing it, or the name belongs to something that is no plain file.
fn open_part(part: &Path) -> io::Result<File> {
    if fs::symlink_metadata(part).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(io::Error::other(format!(
            "{} is in the way and no plain file",
            part.display()
        )));
    }
    let busy = || {
        let text = format!("another download is writing {}", part.display());
        io::Error::new(io::ErrorKind::ResourceBusy, text)
    };
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(part)?;
    file.try_lock().map_err(|_| busy())?;
    // The other download may have finished, and taken the name away, between open and lock.
    let (ours, named) = (file.metadata()?, fs::symlink_metadata(part));
    if !named.is_ok_and(|named| named.dev() == ours.dev() && named.ino() == ours.ino()) {
        return Err(busy());
    }
    file.set_len(0)?;
    Ok(file)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn not_begun() -> io::Error {
    io::Error::other("the body has not begun")
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use tempfile::TempDir;

    use super::*;

    type Outcome = Result<(), Box<dyn Error>>;

    fn names(dir: &TempDir) -> io::Result<Vec<String>> {
        let mut names: Vec<String> = fs::read_dir(dir.path())?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<io::Result<_>>()?;
        names.sort();
        Ok(names)
    }

    #[test]
    fn two_downloads_to_one_name_never_share_a_file() -> Outcome {
        let dir = TempDir::new()?;
        let mut first = FileSink::new(dir.path().join("f"));
        let mut second = FileSink::new(dir.path().join("f"));
        first.begin(None)?;
        first.write("first".into())?;
        let busy = second.begin(None).expect_err("the first one has it");
        assert!(busy.to_string().contains("another download"), "{busy}");
        first.write(" whole".into())?;
        first.finish()?;
        assert_eq!(fs::read_to_string(dir.path().join("f"))?, "first whole");
        // Once the name is free again, so is the way.
        second.begin(None)?;
        second.write("second".into())?;
        second.finish()?;
        assert_eq!(fs::read_to_string(dir.path().join("f"))?, "second");
        Ok(())
    }

    #[test]
    fn a_link_in_the_place_of_the_part_is_not_followed() -> Outcome {
        let dir = TempDir::new()?;
        fs::write(dir.path().join("precious"), "precious")?;
        std::os::unix::fs::symlink(dir.path().join("precious"), dir.path().join("f.part"))?;
        let mut sink = FileSink::new(dir.path().join("f"));
        assert!(sink.begin(None).is_err());
        assert_eq!(fs::read_to_string(dir.path().join("precious"))?, "precious");
        Ok(())
    }

    #[test]
    fn a_file_has_its_name_only_when_it_is_complete() -> Outcome {
        let dir = TempDir::new()?;
        fs::write(dir.path().join("f"), "old")?;
        let mut sink = FileSink::new(dir.path().join("f"));
        assert_eq!(names(&dir)?, ["f"]);
        sink.begin(None)?;
        sink.write("new".into())?;
        assert_eq!(names(&dir)?, ["f", "f.part"]);
        assert_eq!(fs::read_to_string(dir.path().join("f"))?, "old");
        sink.finish()?;
        assert_eq!(names(&dir)?, ["f"]);
        assert_eq!(fs::read_to_string(dir.path().join("f"))?, "new");
        Ok(())
    }

    #[test]
    fn an_incomplete_file_stays_a_part_and_a_wrong_one_becomes_bad() -> Outcome {
        let dir = TempDir::new()?;
        for (why, kept) in [
            (Abandoned::Incomplete, "f.part"),
            (Abandoned::BadChecksum, "f.bad"),
        ] {
            let mut sink = FileSink::new(dir.path().join("f"));
            sink.begin(None)?;
            sink.write("half".into())?;
            assert_eq!(sink.abandon(why), Some(dir.path().join(kept)));
            assert_eq!(names(&dir)?, [kept]);
            assert_eq!(fs::read_to_string(dir.path().join(kept))?, "half");
            fs::remove_file(dir.path().join(kept))?;
        }
        Ok(())
    }

    #[test]
    fn nothing_is_left_of_a_body_without_bytes() -> Outcome {
        let dir = TempDir::new()?;
        let mut sink = FileSink::new(dir.path().join("f"));
        assert_eq!(sink.abandon(Abandoned::Incomplete), None, "before it began");
        sink.begin(Some(ByteCount::new(5)))?;
        assert_eq!(sink.abandon(Abandoned::Incomplete), None);
        assert!(names(&dir)?.is_empty());
        Ok(())
    }

    #[test]
    fn a_place_that_cannot_be_written_is_an_error_at_the_beginning() -> Outcome {
        let dir = TempDir::new()?;
        assert!(FileSink::new(dir.path().join("no/f")).begin(None).is_err());
        assert!(FileSink::new(dir.path()).begin(None).is_err());
        Ok(())
    }

    #[test]
    fn a_device_is_written_to_and_never_replaced() -> Outcome {
        let mut sink = FileSink::new("/dev/null");
        sink.begin(None)?;
        sink.write("gone".into())?;
        sink.finish()?;
        let mut sink = FileSink::new("/dev/full");
        sink.begin(None)?;
        let error = sink.write(Bytes::from_static(&[0; 10])).err();
        assert_eq!(
            error.map(|error| error.kind()),
            Some(io::ErrorKind::StorageFull)
        );
        assert_eq!(sink.abandon(Abandoned::Incomplete), None);
        for device in ["/dev/null", "/dev/full"] {
            assert!(!fs::metadata(device)?.is_file(), "{device}");
            assert!(!Path::new(&format!("{device}.part")).exists(), "{device}");
        }
        Ok(())
    }

    #[test]
    fn binary_data_does_not_reach_a_terminal() -> Outcome {
        let mut out = Vec::new();
        let mut sink = WriteSink {
            writer: &mut out,
            name: "terminal".into(),
            is_terminal: true,
        };
        sink.write("text\n".into())?;
        assert!(sink.write(Bytes::from_static(b"\x00\x01")).is_err());
        assert_eq!(out, b"text\n");
        Ok(())
    }
}
