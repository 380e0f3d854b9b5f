// Package projected mounts volumes that combine several sources in one directory, such as the service
// account token with its CA bundle and namespace.
package projected

import (
	"context"
	"fmt"
	"maps"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"swiftlet/internal/kubeapi"
	"swiftlet/internal/volume/atomicdir"
	"swiftlet/internal/volume/configmap"
	"swiftlet/internal/volume/content"
	"swiftlet/internal/volume/downwardapi"
	"swiftlet/internal/volume/plugin"
	"swiftlet/internal/volume/secret"
)

// Name is the kind's qualified name.
const Name = "kubernetes.io/projected"

// Objects reads ConfigMaps and Secrets; a missing one is an apimachinery NotFound error.
type Objects interface {
	configmap.Getter
	secret.Getter
}

// Tokens issues service account tokens.
type Tokens interface {
	Get(ctx context.Context, namespace, account string, request *authv1.TokenRequest) (kubeapi.Token, error)
	// Adopt passes a token from before a restart of the agent.
	Adopt(namespace, account string, request *authv1.TokenRequest, token string)
}

// Deps are the dependencies of the plugin in addition to content.Deps.
type Deps struct {
	Objects Objects
	Tokens  Tokens
	Trust   Trust
	// Certificates, Tokens and Trust may be nil: then their sources fail.
	Certificates Certificates
	Allocatable  func() v1.ResourceList
}

// New returns the plugin.
func New(deps Deps, common content.Deps) *content.Plugin {
	return content.New(content.Kind{
		Name:    Name,
		Medium:  v1.StorageMediumMemory,
		Handles: func(v *v1.Volume) bool { return v.Projected != nil },
		Collect: func(ctx context.Context, r plugin.Request) (content.Files, error) { return collect(ctx, deps, r) },
	}, common)
}

// collect combines all sources; a later one overrides an earlier one. It returns all errors, not only
// the first.
func collect(ctx context.Context, deps Deps, r plugin.Request) (content.Files, error) {
	src := r.Volume.Projected
	if src.DefaultMode == nil {
		return content.Files{}, content.ErrNoDefaultMode
	}
	files := content.Files{Payload: atomicdir.Payload{}}
	var failed []error
	var size int64
	for i := range src.Sources {
		part, refresh, err := collectSource(ctx, deps, r, i)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		size += part.Size()
		if err := content.CheckSize(size); err != nil { // before the others are read, too
			return content.Files{}, err
		}
		maps.Copy(files.Payload, part)
		if !refresh.IsZero() && (files.RefreshAt.IsZero() || refresh.Before(files.RefreshAt)) {
			files.RefreshAt = refresh
		}
	}
	return files, utilerrors.NewAggregate(failed)
}

func collectSource(ctx context.Context, deps Deps, r plugin.Request, index int) (part atomicdir.Payload, refresh time.Time, err error) {
	mode, user, namespace := r.Volume.Projected.DefaultMode, r.Volume.Projected.DefaultUser, r.Pod.Namespace
	s := &r.Volume.Projected.Sources[index]
	switch {
	case s.Secret != nil:
		part, err = secret.Collect(ctx, deps.Objects, namespace, secret.Source{
			Name: s.Secret.Name, Items: s.Secret.Items, DefaultMode: mode, DefaultUser: user, Optional: s.Secret.Optional})
	case s.ConfigMap != nil:
		part, err = configmap.Collect(ctx, deps.Objects, namespace, configmap.Source{
			Name: s.ConfigMap.Name, Items: s.ConfigMap.Items, DefaultMode: mode, DefaultUser: user, Optional: s.ConfigMap.Optional})
	case s.DownwardAPI != nil:
		part, err = downwardapi.Collect(r.Pod, s.DownwardAPI.Items, mode, user, deps.Allocatable())
	case s.ServiceAccountToken != nil:
		return token(ctx, deps, r, s.ServiceAccountToken)
	case s.ClusterTrustBundle != nil:
		part, err = trustBundle(ctx, deps, r, s.ClusterTrustBundle)
	case s.PodCertificate != nil:
		return podCertificate(ctx, deps, r, index)
	default:
		err = fmt.Errorf("projected volume %s: source type is not supported", r.Volume.Name)
	}
	return part, time.Time{}, err
}
