package image

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/distribution/reference"
	"github.com/moby/moby/api/pkg/authconfig"
	"github.com/moby/moby/api/types/jsonstream"
	"github.com/moby/moby/api/types/registry"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// stalled is how long a pull may go without progress. Docker reports it several times per second, but
// unpacking a large layer on a slow disk is silent.
const stalled = 5 * time.Minute

var errStalled = errors.New("no progress for " + stalled.String())

// Pull pulls an image and returns its ID.
func (s *Images) Pull(ctx context.Context, spec *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig) (string, error) {
	name, err := pullName(spec.GetImage())
	if err != nil {
		return "", err
	}
	credentials, err := encode(auth)
	if err != nil {
		return "", fmt.Errorf("pull image %s: %w", name, err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(stalled, func() { cancel(errStalled) })
	defer watchdog.Stop()
	err = s.Engine.Pull(ctx, name, credentials, func(jsonstream.Message) { watchdog.Reset(stalled) })
	if err != nil {
		if errors.Is(context.Cause(ctx), errStalled) {
			return "", fmt.Errorf("pull image %s: %w", name, errStalled)
		}
		return "", pullError(err)
	}
	image, err := s.Engine.Image(ctx, name)
	if err != nil {
		return "", err
	}
	return image.ID, nil
}

// pullName is the complete name. Docker would pull all tags of a name without one.
func pullName(text string) (string, error) {
	named, err := reference.ParseNormalizedNamed(text)
	if err != nil {
		return "", status.Errorf(codes.InvalidArgument, "pull image %q: %v", text, err)
	}
	if digested, ok := named.(reference.Digested); ok {
		// With a digest the tag says nothing, and Docker refuses both.
		bare, err := reference.WithDigest(reference.TrimNamed(named), digested.Digest())
		if err != nil {
			return "", status.Errorf(codes.InvalidArgument, "pull image %q: %v", text, err)
		}
		return bare.String(), nil
	}
	return reference.TagNameOnly(named).String(), nil
}

// encode translates credentials. Those of Kubernetes may have user and password in one field.
func encode(a *runtimeapi.AuthConfig) (string, error) {
	if a == nil {
		return "", nil
	}
	c := registry.AuthConfig{Username: a.GetUsername(), Password: a.GetPassword(), ServerAddress: a.GetServerAddress(),
		IdentityToken: a.GetIdentityToken(), RegistryToken: a.GetRegistryToken()}
	if a.GetAuth() != "" && c.Username == "" {
		text, err := base64.StdEncoding.DecodeString(a.GetAuth())
		user, password, ok := strings.Cut(strings.TrimRight(string(text), "\x00"), ":")
		if err != nil || !ok {
			return "", status.Error(codes.InvalidArgument, "credentials: auth is not the base64 form of user:password")
		}
		c.Username, c.Password = user, password
	}
	text, err := authconfig.Encode(c)
	if err != nil {
		return "", fmt.Errorf("encode credentials: %w", err)
	}
	return text, nil
}

// pullError gives Docker's answer a code. Docker has one status for most answers of registries.
func pullError(err error) error {
	for _, known := range registryAnswers {
		if strings.Contains(err.Error(), known.part) {
			return status.Error(known.code, err.Error())
		}
	}
	return err
}

var registryAnswers = []struct {
	part string
	code codes.Code
}{
	{"unauthorized", codes.Unauthenticated},
	{"no basic auth credentials", codes.Unauthenticated},
	{"denied", codes.PermissionDenied},
	{"manifest unknown", codes.NotFound},
	{"not found", codes.NotFound},
}
