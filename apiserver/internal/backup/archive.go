package backup

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	utilversion "k8s.io/apimachinery/pkg/util/version"

	"swiftlet/apiserver/internal/etcd"
)

const (
	// format changes when an earlier program could not restore the file.
	format       = 1
	manifestName = "swiftlet-backup.json"
	snapshotName = "etcd.db"
	// maxManifest is more than a manifest has.
	maxManifest = 1 << 20
)

// manifest describes the other entries.
type manifest struct {
	Format     int       `json:"format"`
	Kubernetes string    `json:"kubernetes"` // the version that wrote the objects
	Created    time.Time `json:"created"`
	etcd.Contents
	Entries []entry `json:"entries"`
}

type entry struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// errNotABackup is the error of a file of another kind.
var errNotABackup = errors.New("it is not a backup of swiftlet")

// check returns an error if this program cannot restore what m describes.
func (m manifest) check(kubernetes string) error {
	if m.Format != format {
		return fmt.Errorf("it has format %d, and this program reads format %d; restore it with the version of swiftlet that wrote it", m.Format, format)
	}
	theirs, err := utilversion.ParseGeneric(m.Kubernetes)
	if err != nil {
		return fmt.Errorf("read its version of Kubernetes: %w", err)
	}
	ours, err := utilversion.ParseGeneric(kubernetes)
	if err != nil {
		return fmt.Errorf("read own version of Kubernetes: %w", err)
	}
	if theirs.Major() > ours.Major() || theirs.Major() == ours.Major() && theirs.Minor() > ours.Minor() {
		return fmt.Errorf("it is of Kubernetes %s, and this is the earlier %s, which may not know its objects", m.Kubernetes, kubernetes)
	}
	return nil
}

// source is a file to put into the archive.
type source struct{ name, path string }

// pack writes the archive.
func pack(w io.Writer, m manifest, files []source) error {
	for _, f := range files {
		e, err := describe(f)
		if err != nil {
			return err
		}
		m.Entries = append(m.Entries, e)
	}
	description, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("encode manifest: %w", err)
	}
	compressed := gzip.NewWriter(w)
	archive := tar.NewWriter(compressed)
	header := tar.Header{Name: manifestName, Size: int64(len(description)), Mode: 0o600, ModTime: m.Created}
	if err := archive.WriteHeader(&header); err != nil {
		return err
	}
	if _, err := archive.Write(description); err != nil {
		return err
	}
	for i, f := range files {
		if err := add(archive, f, m.Entries[i], m.Created); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}

func add(archive *tar.Writer, s source, e entry, created time.Time) error {
	f, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := archive.WriteHeader(&tar.Header{Name: e.Name, Size: e.Size, Mode: 0o600, ModTime: created}); err != nil {
		return err
	}
	_, err = io.Copy(archive, f)
	return err
}

func describe(s source) (entry, error) {
	f, err := os.Open(s.path)
	if err != nil {
		return entry{}, err
	}
	defer f.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, f)
	return entry{Name: s.name, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))}, err
}

// unpack reads an archive that this program can restore, and writes its entries to dir. It checks every byte.
func unpack(r io.Reader, dir, kubernetes string) (manifest, error) {
	compressed, err := gzip.NewReader(r)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return manifest{}, errTruncated
	}
	if err != nil { // shorter than a header, or another kind of file
		return manifest{}, errNotABackup
	}
	archive := tar.NewReader(compressed)
	m, err := readManifest(archive)
	if err != nil {
		return manifest{}, err
	}
	if err := m.check(kubernetes); err != nil {
		return manifest{}, err
	}
	for _, e := range m.Entries {
		if err := extract(archive, e, dir); err != nil {
			return manifest{}, err
		}
	}
	if _, err := archive.Next(); !errors.Is(err, io.EOF) {
		return manifest{}, orDamaged(err)
	}
	if _, err := io.Copy(io.Discard, compressed); err != nil { // its checksum is at the end
		return manifest{}, orDamaged(err)
	}
	return m, nil
}

var (
	errTruncated = errors.New("it is truncated")
	errDamaged   = errors.New("it is damaged")
)

// orDamaged says what the error of a reader means.
func orDamaged(err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errTruncated
	case err == nil:
		return errDamaged
	}
	return fmt.Errorf("%w: %w", errDamaged, err)
}

func readManifest(archive *tar.Reader) (manifest, error) {
	header, err := archive.Next()
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return manifest{}, errTruncated
	}
	if err != nil || header.Name != manifestName || header.Size > maxManifest {
		return manifest{}, errNotABackup
	}
	content, err := io.ReadAll(io.LimitReader(archive, maxManifest))
	if err != nil {
		return manifest{}, orDamaged(err)
	}
	var m manifest
	if err := json.Unmarshal(content, &m); err != nil {
		return manifest{}, fmt.Errorf("%w: read manifest: %w", errDamaged, err)
	}
	return m, nil
}

// extract writes the next entry of the archive to dir. It must be e.
func extract(archive *tar.Reader, e entry, dir string) error {
	header, err := archive.Next()
	if err != nil {
		return orDamaged(err)
	}
	if header.Name != e.Name || header.Size != e.Size || filepath.Base(e.Name) != e.Name {
		return fmt.Errorf("%w: it has %q in place of %q", errDamaged, header.Name, e.Name)
	}
	f, err := os.OpenFile(filepath.Join(dir, e.Name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(f, sum), archive); err != nil {
		var disk *os.PathError
		if errors.As(err, &disk) {
			return err
		}
		return orDamaged(err)
	}
	if hex.EncodeToString(sum.Sum(nil)) != e.SHA256 {
		return fmt.Errorf("%w: %s does not have the SHA-256 of the manifest", errDamaged, e.Name)
	}
	return f.Close()
}
