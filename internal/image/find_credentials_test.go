package image

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

type secretsByName map[string]*v1.Secret

func (s secretsByName) Secret(_ context.Context, _, name string) (*v1.Secret, error) {
	if found := s[name]; found != nil {
		return found, nil
	}
	return nil, errors.New("not found")
}

type pluginUser string

func (u pluginUser) Credentials(context.Context, *v1.Pod, string) []Credential {
	return []Credential{{Auth: &runtimeapi.AuthConfig{Username: string(u)}, FromPlugin: true}}
}

type reasons []string

func (r *reasons) Eventf(_ runtime.Object, _, reason, format string, args ...any) {
	*r = append(*r, reason+": "+fmt.Sprintf(format, args...))
}

func TestFindCredentials(t *testing.T) {
	config := func(user string) string {
		return fmt.Sprintf(`{"auths": {"quay.io": {"username": %q, "password": "x"}}}`, user)
	}
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "config.json"), []byte(config("node")), 0o600); err != nil {
		t.Fatal(err)
	}
	secrets := secretsByName{"good": secret(v1.SecretTypeDockerConfigJson, v1.DockerConfigJsonKey, config("pod"))}
	const missing = "FailedToRetrieveImagePullSecret: Unable to retrieve some image pull secrets (absent); attempting to pull the image may not succeed."
	for name, tt := range map[string]struct {
		secrets []string
		plugins CredentialPlugins
		want    []string
		events  []string
	}{
		"node credentials only":               {want: []string{"node"}},
		"pod, then node, then plugins":        {secrets: []string{"good"}, plugins: pluginUser("plugin"), want: []string{"pod", "node", "plugin"}},
		"missing secret does not hide others": {secrets: []string{"absent", "good"}, want: []string{"pod", "node"}, events: []string{missing}},
		"secret reference without name":       {secrets: []string{""}, want: []string{"node"}},
	} {
		t.Run(name, func(t *testing.T) {
			var events reasons
			f, err := NewCredentialFinder(root, FinderDeps{Secrets: secrets, Plugins: tt.plugins, Events: &events, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			p := &v1.Pod{}
			for _, s := range tt.secrets {
				p.Spec.ImagePullSecrets = append(p.Spec.ImagePullSecrets, v1.LocalObjectReference{Name: s})
			}
			found, err := f.Find(t.Context(), p, "quay.io/app")
			if err != nil {
				t.Fatal(err)
			}
			var users []string
			for _, c := range found {
				users = append(users, c.Auth.Username)
			}
			if !slices.Equal(users, tt.want) {
				t.Errorf("credentials of %v, want %v", users, tt.want)
			}
			if !slices.Equal(events, tt.events) {
				t.Errorf("events %q, want %q", events, tt.events)
			}
		})
	}
}
