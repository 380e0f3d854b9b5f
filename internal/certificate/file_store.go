package certificate

import (
	"bytes"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/clock"

	"swiftlet/internal/checkpoint"
)

// errNotStored is the error of Store.Current where there is no certificate at all.
var errNotStored = errors.New("no certificate is stored")

// fileStore keeps each certificate, with its key, in a file of its own, and a link to the current one. The
// names are those of the reference kubelet: kubelet-client-2026-01-02-15-04-05.pem and
// kubelet-client-current.pem.
type fileStore struct {
	dir      string
	prefix   string // of the names: "kubelet-client"
	certFile string // with keyFile, used until there is a current certificate; may be empty
	keyFile  string
	clock    clock.PassiveClock
	log      *slog.Logger
}

// newFileStore completes an update of the reference kubelet that a crash interrupted: it removes the old
// link before it renames the new one.
func newFileStore(s fileStore) (*fileStore, error) {
	if _, err := os.Stat(s.path("current")); err == nil {
		return &s, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	target, err := os.Readlink(s.path("updated"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &s, nil
	case err != nil:
		return nil, err
	}
	if err := checkpoint.ReplaceLink(s.path("current"), target); err != nil {
		return nil, err
	}
	return &s, os.Remove(s.path("updated"))
}

// path returns the path of a file of the store.
func (s *fileStore) path(name string) string {
	return filepath.Join(s.dir, s.prefix+"-"+name+".pem")
}

// Current returns the current certificate, or else the one of certFile, or else one that an early kubelet
// stored in two files.
func (s *fileStore) Current() (*tls.Certificate, error) {
	current := s.path("current")
	early := filepath.Join(s.dir, s.prefix)
	for _, pair := range [][2]string{{current, current}, {s.certFile, s.keyFile}, {early + ".crt", early + ".key"}} {
		cert, err := loadFiles(pair[0], pair[1])
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		s.log.Debug("Loading cert/key pair", "certFile", pair[0], "keyFile", pair[1])
		return cert, err
	}
	return nil, errNotStored
}

func loadFiles(certFile, keyFile string) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("load certificate %s: %w", certFile, err)
	}
	return &pair, nil
}

// Update stores a certificate, with its intermediates, and its key, and makes it the current one.
func (s *fileStore) Update(certPEM, keyPEM []byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("store certificate: %w", err)
	}
	certs, err := certutil.ParseCertsPEM(certPEM)
	if err != nil {
		return nil, fmt.Errorf("store certificate: %w", err)
	}
	content, err := certutil.EncodeCertificates(certs...)
	if err != nil {
		return nil, fmt.Errorf("store certificate: %w", err)
	}
	key, _ := pem.Decode(keyPEM)
	dir, err := filepath.Abs(s.dir) // for the link
	if err != nil {
		return nil, fmt.Errorf("store certificate: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("store certificate: %w", err)
	}
	file := filepath.Join(dir, filepath.Base(s.path(s.clock.Now().Format("2006-01-02-15-04-05"))))
	if err := checkpoint.Replace(file, bytes.Join([][]byte{content, pem.EncodeToMemory(key)}, nil), 0o600); err != nil {
		return nil, fmt.Errorf("store certificate: %w", err)
	}
	if err := checkpoint.ReplaceLink(s.path("current"), file); err != nil {
		return nil, fmt.Errorf("store certificate: %w", err)
	}
	return &pair, nil
}
