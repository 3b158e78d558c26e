//! Answers of a site to plain and to hostile requests.

use std::error::Error;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use tempfile::TempDir;

use super::*;

type Outcome = Result<(), Box<dyn Error>>;

/// A small site with something forbidden of each kind in it and around it.
fn site() -> Result<(TempDir, Site), Box<dyn Error>> {
    let dir = TempDir::new()?;
    let secret = dir.path().join("secret.txt");
    fs::write(&secret, "secret")?;
    let root = dir.path().join("root");
    fs::create_dir_all(root.join("docs/deep"))?;
    fs::create_dir_all(root.join("bare"))?;
    fs::create_dir_all(root.join(".git"))?;
    fs::write(root.join("hello.txt"), "hello\n")?;
    fs::write(root.join("empty"), "")?;
    fs::write(root.join("docs/index.html"), "<p>docs</p>")?;
    fs::write(root.join("docs/deep/a b.bin"), [0, 1, 2])?;
    fs::write(root.join(".env"), "secret")?;
    fs::write(root.join(".git/config"), "secret")?;
    fs::write(root.join("back\\slash"), "secret")?;
    symlink(&secret, root.join("link-out"))?;
    symlink("hello.txt", root.join("link-in"))?;
    symlink(dir.path(), root.join("dir-out"))?;
    symlink("/proc/self/root", root.join("magic"))?;
    rustix::fs::mknodat(
        rustix::fs::CWD,
        root.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )?;
    let site = Site::directory(&root)?;
    Ok((dir, site))
}

fn body(answer: &Answer) -> Result<Vec<u8>, Box<dyn Error>> {
    Ok(match &answer.body {
        Body::Empty => Vec::new(),
        Body::Text(text) => text.to_vec(),
        Body::Generated(size) => content::chunk(0, size.as_u64()).to_vec(),
        Body::File(file) => file.piece(0)?.to_vec(),
    })
}

fn field(answer: &Answer, name: HeaderName) -> Option<&str> {
    answer
        .fields
        .get(name)
        .and_then(|value| value.to_str().ok())
}

/// The site as it is, and the same without openat2.
fn both_ways() -> Result<(TempDir, [Site; 2]), Box<dyn Error>> {
    let (dir, fast) = site()?;
    let mut slow = Site::directory(&dir.path().join("root"))?;
    slow.root.as_mut().ok_or("no root")?.forbid_openat2();
    Ok((dir, [fast, slow]))
}

#[test]
fn files_are_found_with_their_length_and_kind() -> Outcome {
    let (_dir, sites) = both_ways()?;
    for site in &sites {
        for (path, kind, text) in [
            ("/hello.txt", "text/plain", &b"hello\n"[..]),
            ("/empty", "application/octet-stream", b""),
            ("/docs/", "text/html", b"<p>docs</p>"),
            (
                "/docs/deep/a%20b.bin",
                "application/octet-stream",
                &[0, 1, 2],
            ),
        ] {
            let answer = site.answer(&Method::GET, path);
            assert_eq!(answer.status, StatusCode::OK, "{path}");
            assert_eq!(body(&answer)?, text, "{path}");
            assert_eq!(field(&answer, CONTENT_TYPE), Some(kind), "{path}");
            let length = text.len().to_string();
            assert_eq!(field(&answer, CONTENT_LENGTH), Some(&*length), "{path}");
            assert_eq!(
                field(&answer, X_CONTENT_TYPE_OPTIONS),
                Some("nosniff"),
                "{path}"
            );
            assert!(
                field(&answer, ETAG).is_some_and(|tag| tag.starts_with('"')),
                "{path}"
            );
            assert!(field(&answer, LAST_MODIFIED).is_some(), "{path}");
        }
    }
    Ok(())
}

#[test]
fn thirty_hostile_paths_look_like_a_missing_file() -> Outcome {
    let (_dir, sites) = both_ways()?;
    for site in &sites {
        let missing = site.answer(&Method::GET, "/missing");
        for path in [
            "/../secret.txt",
            "/docs/../../secret.txt",
            "/%2e%2e/secret.txt",
            "/%2E%2E/secret.txt",
            "/.%2e/secret.txt",
            "/..%2fsecret.txt",
            "/docs%2f..%2f..%2fsecret.txt",
            "/%252e%252e/secret.txt",
            "/..%5csecret.txt",
            "/..\\secret.txt",
            "/back%5cslash",
            "/back\\slash",
            "/hello.txt%00",
            "/%00",
            "/hello.txt%0",
            "/hello%zz.txt",
            "/./hello.txt",
            "//hello.txt",
            "/docs//index.html",
            "/.env",
            "/%2eenv",
            "/.git/config",
            "/link-out",
            "/link-in",
            "/dir-out/secret.txt",
            "/magic/etc/passwd",
            "/pipe",
            "/hello.txt/",
            "/hello.txt/x",
            "/bare",
            "/bare/",
            "/%c0%ae%c0%ae/secret.txt",
            "/~root",
            "hello.txt",
            "*",
            "",
        ] {
            let answer = site.answer(&Method::GET, path);
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path:?}");
            assert_eq!(answer.fields, missing.fields, "{path:?} is told apart");
            assert_eq!(body(&answer)?, body(&missing)?, "{path:?} is told apart");
        }
    }
    Ok(())
}

#[test]
fn a_device_and_an_unreadable_file_look_missing() -> Outcome {
    let devices = Site::directory(Path::new("/dev"))?;
    assert_eq!(
        devices.answer(&Method::GET, "/null").status,
        StatusCode::NOT_FOUND
    );
    assert_eq!(
        devices.answer(&Method::GET, "/zero").status,
        StatusCode::NOT_FOUND
    );

    let (dir, site) = site()?;
    let path = dir.path().join("root/hello.txt");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000))?;
    // The superuser reads it all the same.
    let expected = if fs::File::open(&path).is_ok() {
        StatusCode::OK
    } else {
        StatusCode::NOT_FOUND
    };
    assert_eq!(site.answer(&Method::GET, "/hello.txt").status, expected);
    Ok(())
}

#[test]
fn opened_descriptors_are_closed_again() -> Outcome {
    let (_dir, sites) = both_ways()?;
    let open = || fs::read_dir("/proc/self/fd").map(Iterator::count);
    let mut leaked = usize::MAX;
    // Other tests open files at the same time; a leak of these 300 would never fall below 200.
    for _ in 0..20 {
        let before = open()?;
        for site in &sites {
            for path in [
                "/hello.txt",
                "/docs/",
                "/pipe",
                "/link-out",
                "/docs/deep/missing",
            ] {
                for _ in 0..30 {
                    site.answer(&Method::GET, path);
                }
            }
        }
        leaked = leaked.min(open()?.saturating_sub(before));
    }
    assert!(leaked < 200, "{leaked} descriptors stay open");
    Ok(())
}

#[test]
fn head_has_the_fields_of_get_and_no_body() -> Outcome {
    let (_dir, site) = site()?;
    for path in [
        "/hello.txt",
        "/docs/",
        "/bytes/10MB",
        "/missing",
        "/docs",
        "/bytes/x",
    ] {
        let get = site.answer(&Method::GET, path);
        let head = site.answer(&Method::HEAD, path);
        assert_eq!(head.status, get.status, "{path}");
        assert_eq!(head.fields, get.fields, "{path}");
        assert!(matches!(head.body, Body::Empty), "{path}");
    }
    Ok(())
}

#[test]
fn other_methods_are_told_what_is_allowed() -> Outcome {
    let (_dir, site) = site()?;
    for method in [
        "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "BREW",
    ] {
        let answer = site.answer(&Method::from_bytes(method.as_bytes())?, "/hello.txt");
        assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "{method}");
        assert_eq!(field(&answer, ALLOW), Some("GET, HEAD"), "{method}");
    }
    Ok(())
}

#[test]
fn a_directory_without_its_slash_is_redirected_to_its_index() -> Outcome {
    let (_dir, site) = site()?;
    let answer = site.answer(&Method::GET, "/docs");
    assert_eq!(answer.status, StatusCode::MOVED_PERMANENTLY);
    assert_eq!(field(&answer, LOCATION), Some("/docs/"));
    assert_eq!(
        site.answer(&Method::GET, "/docs/deep").status,
        StatusCode::NOT_FOUND
    );
    Ok(())
}

#[test]
fn generated_bodies_have_the_size_asked_for() {
    let site = Site::generated();
    for (path, size) in [
        ("/bytes/10MB", 10_000_000),
        ("/bytes/10%20MB", 10_000_000),
        ("/bytes/1MiB", 1_048_576),
        ("/bytes/1350B", 1350),
        ("/bytes/0B", 0),
        ("/bytes/1000GB", 1_000_000_000_000),
    ] {
        let answer = site.answer(&Method::GET, path);
        assert_eq!(answer.status, StatusCode::OK, "{path}");
        assert!(
            matches!(answer.body, Body::Generated(body) if body.as_u64() == size),
            "{path}"
        );
        assert_eq!(
            field(&answer, CONTENT_LENGTH),
            Some(&*size.to_string()),
            "{path}"
        );
    }
    for path in [
        "/bytes/",
        "/bytes/x",
        "/bytes/-1B",
        "/bytes/1001GB",
        "/bytes/10MB/",
        "/bytes/%ff",
    ] {
        assert_eq!(
            site.answer(&Method::GET, path).status,
            StatusCode::NOT_FOUND,
            "{path}"
        );
    }
    assert_eq!(
        site.answer(&Method::GET, "/").status,
        StatusCode::NOT_FOUND,
        "no directory"
    );
}

#[test]
fn a_file_that_shrinks_grows_or_changes_is_noticed() -> Outcome {
    let (dir, site) = site()?;
    let path = dir.path().join("root/large");
    let open = || {
        fs::write(&path, vec![7; 600_000])?;
        match site.answer(&Method::GET, "/large").body {
            Body::File(file) => Ok::<_, Box<dyn Error>>(file),
            other => Err(format!("{other:?}").into()),
        }
    };
    let file = open()?;
    assert_eq!(file.piece(0)?.len(), 262_144);
    assert_eq!(file.piece(524_288)?.len(), 600_000 - 524_288);
    file.check_unchanged()?;

    fs::OpenOptions::new()
        .write(true)
        .open(&path)?
        .set_len(300_000)?;
    assert!(file.piece(262_144).is_err(), "shorter than it was");

    let file = open()?;
    fs::write(&path, vec![7; 700_000])?;
    assert_eq!(
        file.piece(524_288)?.len(),
        600_000 - 524_288,
        "never beyond the announced size"
    );
    assert!(file.check_unchanged().is_err(), "it grew");

    let file = open()?;
    fs::write(dir.path().join("root/new"), vec![8; 600_000])?;
    fs::rename(dir.path().join("root/new"), &path)?;
    assert_eq!(file.piece(0)?[0], 7, "a replaced file is still the old one");
    file.check_unchanged()?;
    Ok(())
}

#[test]
fn a_root_that_is_no_directory_is_refused_by_name() -> Outcome {
    let (dir, _site) = site()?;
    for (path, words) in [
        (dir.path().join("secret.txt"), "not a directory"),
        (dir.path().join("nowhere"), "No such file"),
    ] {
        let error = Site::directory(&path).err().ok_or("accepted")?.to_string();
        assert!(error.contains(words), "{error}");
        assert!(error.contains(&*path.to_string_lossy()), "{error}");
    }
    Ok(())
}
