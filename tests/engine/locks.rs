//! Closing any descriptor of a file drops the process's POSIX locks on it; ours must not.

use ioscope::engine::EngineKind;
use ioscope::page::config::Direct;
use ioscope::page::direct::prove;

use crate::helper::{arms, database, folder, in_another_process, open_proven, rows};

#[test]
fn a_shared_lock_survives_another_connections_reader() {
    let folder = folder();
    let path = folder.path().join("locks.db");
    database(&path, 4096, "delete");
    for arm in arms(EngineKind::Sqlite) {
        let proof = match arm.direct {
            Direct::Disabled => None,
            Direct::Required => match prove(&path) {
                Ok(proof) => Some(proof),
                Err(_) => continue,
            },
        };
        let exclusive = || in_another_process(&path, "begin exclusive; rollback;");
        let Some(mut holder) = open_proven(&arm, &path, 4096, proof.clone()) else { continue };
        rows(&mut *holder, "begin; select count(*) from t");
        assert!(exclusive().unwrap_err().contains("locked"), "{arm:?}: no lock to begin with");
        for _ in 0..3 {
            let Some(mut other) = open_proven(&arm, &path, 4096, proof.clone()) else { continue };
            rows(&mut *other, "select count(*) from t");
            other.close().unwrap();
            assert!(exclusive().unwrap_err().contains("locked"), "{arm:?}: the lock was lost");
        }
        rows(&mut *holder, "select sum(v) from t; commit");
        assert!(exclusive().is_ok(), "{arm:?}: the lock outlived its transaction");
        holder.close().unwrap();
    }
}
