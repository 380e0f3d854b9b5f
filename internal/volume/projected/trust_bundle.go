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

// Trust knows whom the cluster trusts, as certificates in PEM.
type Trust interface {
	AnchorsByName(ctx context.Context, name string, allowMissing bool) ([]byte, error)
	AnchorsBySigner(ctx context.Context, signer string, selector *metav1.LabelSelector, allowMissing bool) ([]byte, error)
}

// trustBundle makes the file of the certificates to trust.
func trustBundle(ctx context.Context, deps Deps, r plugin.Request, s *v1.ClusterTrustBundleProjection) (atomicdir.Payload, error) {
	if deps.Trust == nil {
		return nil, errors.New("ClusterTrustBundle projection: no API server has any in standalone mode")
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
	return atomicdir.Payload{s.Path: ownFile(r, s.User, data)}, nil
}

// ownFile is a file for the pod alone: readable by the one user or, after the files are
// handed over, the one group. A user that the pod's author names comes before the one that
// its containers have in common.
func ownFile(r plugin.Request, user *int64, data []byte) atomicdir.File {
	owner := cmp.Or(user, r.Volume.Projected.DefaultUser, commonUser(r.Pod))
	file := atomicdir.File{Data: data, Mode: *r.Volume.Projected.DefaultMode, Owner: owner}
	if file.Owner != nil || r.FSGroup() != nil {
		file.Mode = 0o600
	}
	return file
}
