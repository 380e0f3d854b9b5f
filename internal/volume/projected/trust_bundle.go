package projected

import (
	"cmp"
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/internal/volume/atomicdir"
	"swiftlet/internal/volume/plugin"
)

// Trust returns the certificates of ClusterTrustBundles as PEM.
type Trust interface {
	AnchorsByName(ctx context.Context, name string, allowMissing bool) ([]byte, error)
	AnchorsBySigner(ctx context.Context, signer string, selector *metav1.LabelSelector, allowMissing bool) ([]byte, error)
}

// trustBundle returns the file of the trusted certificates.
func trustBundle(ctx context.Context, deps Deps, r plugin.Request, s *v1.ClusterTrustBundleProjection) (atomicdir.Payload, error) {
	if deps.Trust == nil {
		return nil, errors.New("ClusterTrustBundle projection: no API server in standalone mode")
	}
	var (
		data     []byte
		err      error
		optional = s.Optional != nil && *s.Optional
	)
	switch {
	case s.Name != nil:
		data, err = deps.Trust.AnchorsByName(ctx, *s.Name, optional)
	case s.SignerName != nil:
		data, err = deps.Trust.AnchorsBySigner(ctx, *s.SignerName, s.LabelSelector, optional)
	default:
		err = errors.New("ClusterTrustBundle projection requires either name or signerName to be set")
	}
	if err != nil {
		return nil, err
	}
	return atomicdir.Payload{s.Path: privateFile(r, s.User, data)}, nil
}

// privateFile is a file that only its owner or, after the change of group, the fsGroup can read. A
// user in the pod's spec takes precedence over the one that all containers run as.
func privateFile(r plugin.Request, user *int64, data []byte) atomicdir.File {
	owner := cmp.Or(user, r.Volume.Projected.DefaultUser, commonUser(r.Pod))
	file := atomicdir.File{Data: data, Mode: *r.Volume.Projected.DefaultMode, Owner: owner}
	if file.Owner != nil || r.FSGroup() != nil {
		file.Mode = 0o600
	}
	return file
}
