package etcd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.uber.org/zap"
)

// revisionBump is how many revisions a restored store skips, as etcd recommends: more than were made since the
// snapshot. Clients that watch from one of those get the error that it is compacted, and list again.
const revisionBump = 1_000_000_000

// Contents says what a snapshot has.
type Contents struct {
	Revision int64 `json:"revision"`
	Keys     int   `json:"keys"`
}

// CheckSnapshot checks the SHA-256 and every page of the snapshot in the file.
func CheckSnapshot(file string) (Contents, error) {
	if err := checkDigest(file); err != nil {
		return Contents{}, fmt.Errorf("check snapshot: %w", err)
	}
	status, err := snapshot.NewV3(zap.NewNop()).Status(file)
	if err != nil {
		return Contents{}, fmt.Errorf("check snapshot: %w", err)
	}
	return Contents{Revision: status.Revision, Keys: status.TotalKey}, nil
}

// checkDigest compares the content with the SHA-256 at the end, which is missing from a snapshot that ended early.
func checkDigest(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Seek(-sha256.Size, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("read SHA-256: %w", err)
	}
	want := make([]byte, sha256.Size)
	if _, err := io.ReadFull(f, want); err != nil {
		return fmt.Errorf("read SHA-256: %w", err)
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, size)); err != nil {
		return err
	}
	if !bytes.Equal(sum.Sum(nil), want) {
		return errors.New("it is incomplete")
	}
	return nil
}

// Restore makes a data directory, which must not exist, from the snapshot in the file, and opens it once. It
// returns the first revision that clients see.
func Restore(ctx context.Context, file, dir string) (revision int64, err error) {
	cfg := config(dir)
	err = snapshot.NewV3(zap.NewNop()).Restore(snapshot.RestoreConfig{
		SnapshotPath: file, OutputDataDir: dir, Name: cfg.Name,
		PeerURLs:       []string{cfg.AdvertisePeerUrls[0].String()},
		InitialCluster: cfg.InitialCluster, InitialClusterToken: cfg.InitialClusterToken,
		RevisionBump: revisionBump, MarkCompacted: true,
	})
	if err != nil {
		return 0, fmt.Errorf("restore snapshot: %w", err)
	}
	member, err := Start(ctx, dir)
	if err != nil {
		return 0, err
	}
	client := member.Client()
	answer, err := client.Get(ctx, "/")
	client.Close()
	if closeErr := member.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return 0, fmt.Errorf("open restored store: %w", err)
	}
	return answer.Header.Revision, nil
}
