//! A figure's files.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{Drawing, FigureError};

/// Writes NAME.svg, NAME.png, NAME.pdf and NAME.csv into `folder`, which is made if it is missing, and returns their
/// paths. Each file is written under another name, synced and renamed: there is never half a file under its own.
///
/// # Errors
/// [`FigureError::Write`]; files that were written before it stay.
pub fn write(drawing: &Drawing, folder: &Path) -> Result<Vec<PathBuf>, FigureError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| FigureError::Write { path, source }
    };
    std::fs::create_dir_all(folder).map_err(failed(folder))?;
    let files: [(&str, &[u8]); 4] = [
        ("svg", drawing.svg.as_bytes()),
        ("png", &drawing.png),
        ("pdf", &drawing.pdf),
        ("csv", drawing.csv.as_bytes()),
    ];
    let mut paths = Vec::new();
    for (extension, bytes) in files {
        let path = folder.join(format!("{}.{extension}", drawing.name));
        write_whole(folder, &path, bytes).map_err(failed(&path))?;
        paths.push(path);
    }
    Ok(paths)
}

fn write_whole(folder: &Path, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    // Readable like any file that a program writes: the umask takes away what the user does not want.
    let mut builder = tempfile::Builder::new();
    let mut file = builder.prefix(".figure-").permissions(Permissions::from_mode(0o666)).tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
