package projected

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/boundedio"
	"swiftlet/internal/kubeapi"
	"swiftlet/internal/volume/atomicdir"
	"swiftlet/internal/volume/plugin"
)

// Certificates issues certificates for pods.
type Certificates interface {
	Get(ctx context.Context, of *v1.Pod, volume string, index int, s *v1.PodCertificateProjection) (kubeapi.PodCertificate, error)
	// Adopt passes a key and its certificates from before a restart of the agent.
	Adopt(of *v1.Pod, volume string, index int, key, chain []byte)
}

// podCertificate returns the files of a key and its certificates.
func podCertificate(ctx context.Context, deps Deps, r plugin.Request, index int) (atomicdir.Payload, time.Time, error) {
	s := r.Volume.Projected.Sources[index].PodCertificate
	if deps.Certificates == nil {
		return nil, time.Time{}, errors.New("PodCertificate projection: no API server issues certificates in standalone mode")
	}
	if key, chain, ok := readExisting(r.VolumeDir(Name), s); ok {
		deps.Certificates.Adopt(r.Pod, r.Volume.Name, index, key, chain)
	}
	got, err := deps.Certificates.Get(ctx, r.Pod, r.Volume.Name, index, s)
	if err != nil {
		return nil, time.Time{}, err
	}
	files := atomicdir.Payload{}
	for path, data := range map[string][]byte{
		s.CredentialBundlePath: bytes.Join([][]byte{got.Key, got.Chain}, nil),
		s.KeyPath:              got.Key,
		s.CertificateChainPath: got.Chain,
	} {
		if path != "" {
			files[path] = privateFile(r, s.User, data)
		}
	}
	return files, got.RefreshAt, nil
}

// readExisting reads the files that an earlier agent wrote. The key comes first in a bundle.
func readExisting(dir string, s *v1.PodCertificateProjection) (key, chain []byte, ok bool) {
	if s.CredentialBundlePath != "" {
		bundle, err := boundedio.ReadFile(filepath.Join(dir, s.CredentialBundlePath), boundedio.Small)
		block, rest := pem.Decode(bundle)
		if err != nil || block == nil {
			return nil, nil, false
		}
		return pem.EncodeToMemory(block), rest, true
	}
	key, err := boundedio.ReadFile(filepath.Join(dir, s.KeyPath), boundedio.Small)
	if err != nil {
		return nil, nil, false
	}
	chain, err = boundedio.ReadFile(filepath.Join(dir, s.CertificateChainPath), boundedio.Small)
	return key, chain, err == nil
}
