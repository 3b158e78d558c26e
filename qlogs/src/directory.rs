//! Opening the file for one side of a connection, without ever touching a file that exists.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::header::{VantagePoint, file_stem};

/// Creates the file for one side of a connection in `dir` and returns it with its path.
///
/// The directory is created if it is missing. The file is named as [`file_name`](crate::file_name)
/// says; if that name is taken, `-1`, `-2` and so on is put before the extension. An existing file is
/// neither opened nor overwritten: the client chooses the connection ID, and a repeated one must not
/// cost an older log; and a record in the middle that a crash cut off makes viewers hang. On Unix only
/// the owner may read the file (mode 0600).
///
/// # Errors
///
/// Whatever the file system says, and [`io::ErrorKind::AlreadyExists`] after 10,000 taken names.
pub fn create_in(dir: &Path, odcid: &[u8], vantage: VantagePoint) -> io::Result<(File, PathBuf)> {
    fs::create_dir_all(dir)?;
    let stem = file_stem(odcid, vantage);
    for attempt in 0..MOST_ATTEMPTS {
        let path = dir.join(match attempt {
            0 => format!("{stem}.sqlog"),
            n => format!("{stem}-{n}.sqlog"),
        });
        match new_file_options().open(&path) {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::AlreadyExists,
        format!(
            "{}: {MOST_ATTEMPTS} files named {stem} exist already",
            dir.display()
        ),
    ))
}

/// Bounds the search for a free name, which a peer could otherwise make ever longer.
const MOST_ATTEMPTS: u32 = 10_000;

fn new_file_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
