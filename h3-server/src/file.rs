//! One opened descriptor per answer: found without leaving the root, read up to the size it had.
//!
//! Names are resolved by the kernel beneath the root directory with openat2 and without any
//! symbolic link; where that call is missing, name by name with O_NOFOLLOW. Everything after that
//! asks the descriptor, never the name again, so a name that is swapped in between changes nothing.

use std::fs::{File, FileType};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// The longest piece of a file that is read at once.
///
/// Reading blocks the task that serves the request. That is on purpose: a download server reads
/// from the page cache or a local disk, where a piece of this size takes some ten to a few hundred
/// microseconds, while handing each one to another thread costs a wake-up both ways and needs a
/// runtime. The bound keeps other connections on the same thread from waiting longer than that.
const MAX_PIECE: u64 = 256 * 1024;

const FILE_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);

/// A directory beneath which files are found.
#[derive(Debug)]
pub(crate) struct Root {
    directory: OwnedFd,
    /// Whether openat2 may be tried.
    has_openat2: bool,
}

impl Root {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self {
            directory,
            has_openat2: cfg!(target_os = "linux"),
        })
    }

    /// Opens what `names` lead to. `Ok(None)`: nothing that may be served.
    ///
    /// # Errors
    /// The system cannot tell (too many open files, an I/O error).
    pub(crate) fn find(&self, names: &[Vec<u8>]) -> io::Result<Option<Found>> {
        let descriptor = match self.open_beneath(names) {
            Ok(descriptor) => descriptor,
            Err(error) if is_absence(error) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let file = File::from(descriptor);
        let (identity, kind) = Identity::of(&file)?;
        Ok(if kind.is_file() {
            Some(Found::File(OpenFile { file, identity }))
        } else if kind.is_dir() {
            Some(Found::Directory)
        } else {
            // A FIFO, a socket or a device: opened without blocking, and not read.
            None
        })
    }

    fn open_beneath(&self, names: &[Vec<u8>]) -> Result<OwnedFd, Errno> {
        #[cfg(target_os = "linux")]
        if self.has_openat2 {
            use rustix::fs::ResolveFlags;
            let path = if names.is_empty() {
                b".".to_vec()
            } else {
                names.join(&b'/')
            };
            let resolve =
                ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            let directory = &self.directory;
            match rustix::fs::openat2(directory, &path[..], FILE_FLAGS, Mode::empty(), resolve) {
                // Kernels before 5.6 lack the call; some containers forbid it. EPERM can also be
                // the file's own, and then the second way gives the same answer.
                Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => {}
                outcome => return outcome,
            }
        }
        self.open_name_by_name(names)
    }

    fn open_name_by_name(&self, names: &[Vec<u8>]) -> Result<OwnedFd, Errno> {
        let step = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let Some((last, directories)) = names.split_last() else {
            return rustix::fs::openat(&self.directory, c".", step, Mode::empty());
        };
        let mut opened = None;
        for name in directories {
            let from = opened.as_ref().unwrap_or(&self.directory);
            opened = Some(rustix::fs::openat(from, &name[..], step, Mode::empty())?);
        }
        let from = opened.as_ref().unwrap_or(&self.directory);
        rustix::fs::openat(
            from,
            &last[..],
            FILE_FLAGS | OFlags::NOFOLLOW,
            Mode::empty(),
        )
    }

    /// Whether there is a regular file.
    pub(crate) fn has_file(&self, names: &[Vec<u8>]) -> bool {
        matches!(self.find(names), Ok(Some(Found::File(_))))
    }

    /// From now on as on a kernel without openat2.
    #[cfg(test)]
    pub(crate) fn forbid_openat2(&mut self) {
        self.has_openat2 = false;
    }
}

/// What a path leads to.
#[derive(Debug)]
pub(crate) enum Found {
    File(OpenFile),
    Directory,
}

/// Errors that mean "nothing to serve under this name", as opposed to "cannot tell".
fn is_absence(error: Errno) -> bool {
    matches!(
        error,
        Errno::NOENT
            | Errno::NOTDIR
            | Errno::LOOP
            | Errno::XDEV
            | Errno::ACCESS
            | Errno::PERM
            | Errno::NAMETOOLONG
            | Errno::INVAL
            | Errno::ILSEQ
            | Errno::NXIO
            | Errno::NODEV
            | Errno::OPNOTSUPP
    )
}

/// An opened regular file and what it was when it was opened.
#[derive(Debug)]
pub(crate) struct OpenFile {
    file: File,
    identity: Identity,
}

/// What must not change while a file is sent.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    modified_s: i64,
    modified_ns: i64,
}

impl Identity {
    fn of(file: &File) -> io::Result<(Self, FileType)> {
        let metadata = file.metadata()?;
        let identity = Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified_s: metadata.mtime(),
            modified_ns: metadata.mtime_nsec(),
        };
        Ok((identity, metadata.file_type()))
    }
}

impl OpenFile {
    /// The size when it was opened, in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.identity.size
    }

    /// When it was last modified; `None` before 1970.
    pub(crate) fn modified(&self) -> Option<SystemTime> {
        let seconds = u64::try_from(self.identity.modified_s).ok()?;
        SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
    }

    /// A strong entity tag (RFC 9110 section 8.8.3): another inode, size or time is another tag.
    pub(crate) fn etag(&self) -> String {
        let Identity {
            inode,
            size,
            modified_s,
            modified_ns,
            ..
        } = self.identity;
        format!("\"{inode:x}-{size:x}-{modified_s:x}.{modified_ns:x}\"")
    }

    /// The next piece from `offset` on, never beyond the size at opening.
    ///
    /// # Errors
    /// The file has become shorter than it was, or cannot be read.
    pub(crate) fn piece(&self, offset: u64) -> io::Result<Bytes> {
        let length = self.size().saturating_sub(offset).min(MAX_PIECE);
        let mut piece = BytesMut::zeroed(usize::try_from(length).unwrap_or(0));
        self.file
            .read_exact_at(&mut piece, offset)
            .map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => changed(),
                _ => error,
            })?;
        Ok(piece.freeze())
    }

    /// Whether it still is what it was when it was opened.
    ///
    /// # Errors
    /// It has another size or time of modification.
    pub(crate) fn check_unchanged(&self) -> io::Result<()> {
        let (now, _) = Identity::of(&self.file)?;
        if now == self.identity {
            Ok(())
        } else {
            Err(changed())
        }
    }
}

fn changed() -> io::Error {
    io::Error::other("the file changed while it was sent")
}
