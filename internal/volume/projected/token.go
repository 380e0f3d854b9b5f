package projected

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/boundedio"
	"swiftlet/internal/pod"
	"swiftlet/internal/volume/atomicdir"
	"swiftlet/internal/volume/plugin"
)

// token returns the file of a service account token that is bound to the pod.
func token(ctx context.Context, deps Deps, r plugin.Request, s *v1.ServiceAccountTokenProjection) (atomicdir.Payload, time.Time, error) {
	if deps.Tokens == nil {
		return nil, time.Time{}, errors.New("failed to fetch token: no API server issues tokens in standalone mode")
	}
	request := &authv1.TokenRequest{Spec: authv1.TokenRequestSpec{
		ExpirationSeconds: s.ExpirationSeconds,
		BoundObjectRef:    &authv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: r.Pod.Name, UID: r.Pod.UID},
	}}
	if s.Audience != "" {
		request.Spec.Audiences = []string{s.Audience}
	}
	account := r.Pod.Spec.ServiceAccountName
	if written, err := boundedio.ReadFile(filepath.Join(r.VolumeDir(Name), s.Path), boundedio.Small); err == nil {
		deps.Tokens.Adopt(r.Pod.Namespace, account, request, string(written))
	}
	got, err := deps.Tokens.Get(ctx, r.Pod.Namespace, account, request)
	if err != nil {
		return nil, time.Time{}, err
	}
	return atomicdir.Payload{s.Path: privateFile(r, s.User, []byte(got.Value))}, got.RefreshAt, nil
}

// commonUser is the user that all containers run as, nil if they differ or one is unknown.
func commonUser(p *v1.Pod) *int64 {
	var common *int64
	for c := range pod.Containers(p) {
		user := userOf(p, c)
		if user == nil || (common != nil && *common != *user) {
			return nil
		}
		common = user
	}
	return common
}

func userOf(p *v1.Pod, c *v1.Container) *int64 {
	if c.SecurityContext != nil && c.SecurityContext.RunAsUser != nil {
		return c.SecurityContext.RunAsUser
	}
	if p.Spec.SecurityContext != nil {
		return p.Spec.SecurityContext.RunAsUser
	}
	return nil
}
