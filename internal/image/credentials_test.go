package image

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func names(k *Keyring, repository string) []string {
	var all []string
	for _, auth := range k.Lookup(repository) {
		all = append(all, auth.Auth.Username)
	}
	return all
}

func TestLookup(t *testing.T) {
	for _, test := range []struct {
		name       string
		keys       []string
		repository string
		want       []string
	}{
		{"host", []string{"quay.io"}, "quay.io/team/app", []string{"quay.io"}},
		{"another host", []string{"quay.io"}, "gcr.io/team/app", nil},
		{"path prefix", []string{"quay.io/team"}, "quay.io/team/app", []string{"quay.io/team"}},
		{"another path", []string{"quay.io/other"}, "quay.io/team/app", nil},
		{"most specific first", []string{"quay.io", "quay.io/team"}, "quay.io/team/app", []string{"quay.io/team", "quay.io"}},
		{"key with scheme", []string{"https://quay.io"}, "quay.io/app", []string{"https://quay.io"}},
		{"key with API version", []string{"https://quay.io/v2/"}, "quay.io/app", []string{"https://quay.io/v2/"}},
		{"pattern", []string{"*.azurecr.io"}, "me.azurecr.io/app", []string{"*.azurecr.io"}},
		{"pattern matches one label only", []string{"*.azurecr.io"}, "a.b.azurecr.io/app", nil},
		{"pattern within a label", []string{"reg*.example.com"}, "registry.example.com/app", []string{"reg*.example.com"}},
		{"port", []string{"localhost:5000"}, "localhost:5000/app", []string{"localhost:5000"}},
		{"another port", []string{"localhost:5001"}, "localhost:5000/app", nil},
		{"port is not implied", []string{"localhost"}, "localhost:5000/app", nil},
		{"Docker Hub", []string{"https://index.docker.io/v1/"}, "docker.io/library/busybox", []string{"https://index.docker.io/v1/"}},
		{"Docker Hub by its short name", []string{"docker.io"}, "docker.io/library/busybox", []string{"docker.io"}},
		{"not Docker Hub", []string{"https://index.docker.io/v1/"}, "quay.io/library/busybox", nil},
	} {
		k := &Keyring{}
		logins := map[string]login{}
		for _, key := range test.keys {
			logins[key] = login{username: key}
		}
		k.add(logins)
		if got := names(k, test.repository); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

func secret(kind v1.SecretType, key, data string) *v1.Secret {
	return &v1.Secret{Type: kind, Data: map[string][]byte{key: []byte(data)}}
}

func TestNewKeyring(t *testing.T) {
	auth := base64.StdEncoding.EncodeToString([]byte("user:pass:word"))
	for _, test := range []struct {
		name     string
		secret   *v1.Secret
		user, pw string
		fails    bool
	}{
		{name: "user and password", secret: secret(v1.SecretTypeDockerConfigJson, v1.DockerConfigJsonKey, `{"auths":{"r.io":{"username":"u","password":"p"}}}`), user: "u", pw: "p"},
		{name: "auth takes precedence", secret: secret(v1.SecretTypeDockerConfigJson, v1.DockerConfigJsonKey, `{"auths":{"r.io":{"username":"u","auth":"`+auth+`"}}}`), user: "user", pw: "pass:word"},
		{name: "auth without padding", secret: secret(v1.SecretTypeDockerConfigJson, v1.DockerConfigJsonKey, `{"auths":{"r.io":{"auth":"`+strings.TrimRight(auth, "=")+`"}}}`), user: "user", pw: "pass:word"},
		{name: "dockercfg", secret: secret(v1.SecretTypeDockercfg, v1.DockerConfigKey, `{"r.io":{"username":"u","password":"p"}}`), user: "u", pw: "p"},
		{name: "opaque secret is ignored", secret: secret(v1.SecretTypeOpaque, v1.DockerConfigKey, `{"r.io":{"username":"u"}}`)},
		{name: "not JSON", secret: secret(v1.SecretTypeDockercfg, v1.DockerConfigKey, `hunter2`), fails: true},
		{name: "auth is not base64", secret: secret(v1.SecretTypeDockercfg, v1.DockerConfigKey, `{"r.io":{"auth":"hunter2!"}}`), fails: true},
		{name: "auth without colon", secret: secret(v1.SecretTypeDockercfg, v1.DockerConfigKey, `{"r.io":{"auth":"aHVudGVyMg=="}}`), fails: true},
		{name: "entry of wrong JSON type", secret: secret(v1.SecretTypeDockercfg, v1.DockerConfigKey, `{"r.io":"hunter2"}`), fails: true},
	} {
		k, err := NewKeyring([]*v1.Secret{test.secret})
		if (err != nil) != test.fails {
			t.Errorf("%s: error %v", test.name, err)
		}
		if err != nil {
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: the error shows the secret: %v", test.name, err)
			}
			continue
		}
		found := k.Lookup("r.io/app")
		if test.user == "" != (len(found) == 0) || len(found) > 0 && (found[0].Auth.Username != test.user || found[0].Auth.Password != test.pw) {
			t.Errorf("%s: %v", test.name, found)
		}
	}
}

func TestNodeKeyring(t *testing.T) {
	root, home := t.TempDir(), t.TempDir()
	write := func(file, data string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want ...string) {
		t.Helper()
		k, err := NodeKeyring(root, home)
		if err != nil || !slices.Equal(names(k, "r.io/app"), want) {
			t.Errorf("%v, %v; want %v", names(k, "r.io/app"), err, want)
		}
	}
	expect()
	write(filepath.Join(home, ".dockercfg"), `{"r.io":{"username":"older"}}`)
	expect("older")
	write(filepath.Join(home, ".docker/config.json"), `{"auths":{"r.io":{"username":"home"}}}`)
	expect("home")
	write(filepath.Join(root, "config.json"), `{"auths":{"r.io":{"username":"root"}}}`)
	expect("root")
	write(filepath.Join(root, "config.json"), `{`)
	// An invalid file is reported, and the next one used.
	if k, err := NodeKeyring(root, home); err == nil || !slices.Equal(names(k, "r.io/app"), []string{"home"}) {
		t.Errorf("with an invalid file: %v, %v", names(k, "r.io/app"), err)
	}
}

func FuzzDockerConfig(f *testing.F) {
	f.Add([]byte(`{"auths":{"r.io":{"auth":"dTpw"}}}`))
	f.Add([]byte(`{"https://[::1]:5000/v1/":{"username":"u"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, kind := range []*v1.Secret{
			secret(v1.SecretTypeDockerConfigJson, v1.DockerConfigJsonKey, string(data)),
			secret(v1.SecretTypeDockercfg, v1.DockerConfigKey, string(data)),
		} {
			if k, err := NewKeyring([]*v1.Secret{kind}); err == nil {
				k.Lookup("r.io/app")
			}
		}
	})
}
