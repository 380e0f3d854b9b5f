package credentialplugin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const sound = `
- name: helper
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  matchImages: ["*.example.com:5000/team"]
  defaultCacheDuration: 0s
`

func write(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Each mistake is told with its field; the others beside it, too.
func TestMistakes(t *testing.T) {
	tokens := func(more string) string {
		return head + sound + "  tokenAttributes:\n    " + strings.ReplaceAll(more, "; ", "\n    ")
	}
	const fine = "serviceAccountTokenAudience: a; requireServiceAccount: true; cacheType: Token"
	for _, test := range []struct{ name, config, want string }{
		{"empty", "", `kind: must be CredentialProviderConfig, not ""`},
		{"no YAML", "{", "did not find expected node content"},
		{"another kind", "apiVersion: kubelet.config.k8s.io/v1\nkind: KubeletConfiguration", `kind: must be CredentialProviderConfig, not "KubeletConfiguration"`},
		{"another version", "apiVersion: kubelet.config.k8s.io/v2\nkind: CredentialProviderConfig",
			`apiVersion: must be one of [kubelet.config.k8s.io/v1 kubelet.config.k8s.io/v1beta1 kubelet.config.k8s.io/v1alpha1], not "kubelet.config.k8s.io/v2"`},
		{"no providers", head, "providers: at least one is needed"},
		{"an unknown field", head + sound + "  timeout: 1s", `unknown field "providers[0].timeout"`},
		{"a field twice", head + sound + "  name: other", `key "name" already set in map`},
		{"a wrong type", head + strings.Replace(sound, "helper", "[helper]", 1), "cannot unmarshal array into Go struct field CredentialProvider.providers.name of type string"},
		{"no name", head + strings.Replace(sound, "helper", `""`, 1), "providers[0].name: is needed"},
		{"a path", head + strings.Replace(sound, "helper", "../helper", 1), `providers[0].name: "../helper" is no name of a program: it must be neither . nor .., and hold neither / nor spaces`},
		{"a space", head + strings.Replace(sound, "helper", "a helper", 1), `providers[0].name: "a helper" is no name of a program`},
		{"the directory", head + strings.Replace(sound, "helper", "..", 1), `providers[0].name: ".." is no name of a program`},
		{"the same name", head + sound + sound, `providers[1].name: "helper" is also the name of a provider in `},
		{"no version", head + strings.Replace(sound, "apiVersion: credentialprovider.kubelet.k8s.io/v1", "args: []", 1),
			`providers[0].apiVersion: must be one of [credentialprovider.kubelet.k8s.io/v1 credentialprovider.kubelet.k8s.io/v1beta1 credentialprovider.kubelet.k8s.io/v1alpha1], not ""`},
		{"no images", head + strings.Replace(sound, `["*.example.com:5000/team"]`, "[]", 1), "providers[0].matchImages: at least one is needed"},
		{"no image", head + strings.Replace(sound, `5000`, "port", 1), `providers[0].matchImages[0]: parse "https://*.example.com:port/team": invalid port ":port" after host`},
		{"no duration", head + strings.Replace(sound, "defaultCacheDuration: 0s", "args: []", 1), "providers[0].defaultCacheDuration: is needed"},
		{"a negative duration", head + strings.Replace(sound, "0s", "-1s", 1), "providers[0].defaultCacheDuration: -1s is negative"},
		{"two mistakes", head + strings.NewReplacer("0s", "-1s", "helper", ".").Replace(sound),
			"providers[0].name: \".\" is no name of a program\nproviders[0].defaultCacheDuration: -1s is negative"},
		{"tokens without a gate", tokens(fine), "providers[0].tokenAttributes: needs the feature gate KubeletServiceAccountTokenForCredentialProviders"},
		{"tokens in an older file", strings.Replace(tokens(fine), "config.k8s.io/v1", "config.k8s.io/v1beta1", 1),
			"providers[0].tokenAttributes: kubelet.config.k8s.io/v1beta1 does not have it, use kubelet.config.k8s.io/v1"},
		{"tokens in older requests", strings.Replace(tokens(fine), "kubelet.k8s.io/v1", "kubelet.k8s.io/v1beta1", 1),
			"providers[0].tokenAttributes: needs apiVersion credentialprovider.kubelet.k8s.io/v1"},
		{"no audience", tokens("cacheType: Token"), "providers[0].tokenAttributes.serviceAccountTokenAudience: is needed"},
		{"account needed or not", tokens("cacheType: Token"), "providers[0].tokenAttributes.requireServiceAccount: is needed"},
		{"kept for whom", tokens("cacheType: Pod"), `providers[0].tokenAttributes.cacheType: must be one of [ServiceAccount Token], not "Pod"`},
		{"annotations of no account", tokens("requireServiceAccount: false; requiredServiceAccountAnnotationKeys: [a]"),
			"providers[0].tokenAttributes.requiredServiceAccountAnnotationKeys: needs requireServiceAccount to be true"},
		{"no key", tokens(`requiredServiceAccountAnnotationKeys: ["a b"]`), `providers[0].tokenAttributes.requiredServiceAccountAnnotationKeys[0]: "a b": name part must consist of`},
		{"a key twice", tokens("requiredServiceAccountAnnotationKeys: [a, A]; optionalServiceAccountAnnotationKeys: [a]"),
			`providers[0].tokenAttributes.optionalServiceAccountAnnotationKeys[0]: "a" stands here twice`},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(write(t, map[string]string{"c.yaml": test.config}), "c.yaml")
			gate := !strings.Contains(test.name, "gate")
			_, err := Read(file, gate)
			for want := range strings.Lines(test.want) {
				if err == nil || !strings.Contains(err.Error(), file+": ") || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
					t.Errorf("got %v, want %s", err, want)
				}
			}
		})
	}
}

// The files of a directory are put together in the order of their names.
func TestADirectory(t *testing.T) {
	files := map[string]string{
		"20.yaml":    head + strings.Replace(sound, "helper", "second", 1),
		"10.yml":     head + strings.Replace(sound, "helper", "first", 1),
		"30.json":    `{"apiVersion":"kubelet.config.k8s.io/v1alpha1","kind":"CredentialProviderConfig","providers":[{"name":"third","apiVersion":"credentialprovider.kubelet.k8s.io/v1alpha1","matchImages":["a"],"defaultCacheDuration":"1s"}]}`,
		"05.yaml~":   "no matter",
		"README.txt": "no matter",
	}
	read, err := Read(write(t, files), true)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range read.Providers {
		names = append(names, p.Name)
	}
	if got := strings.Join(names, " "); got != "first second third" {
		t.Errorf("got %s", got)
	}
	const hash = "sha256:af531efb805263e77406dbf413dba5e24eff484519588131cf7299cdd9ddd023"
	if read.Hash != hash {
		t.Errorf("hash %s", read.Hash)
	}
	if _, err := read.Programs(t.TempDir()); err == nil || strings.Count(err.Error(), "no such file or directory") != 3 {
		t.Errorf("without the programs: %v", err)
	}
	files["40.yaml"] = files["20.yaml"]
	if _, err := Read(write(t, files), true); err == nil || !strings.Contains(err.Error(), `40.yaml: providers[0].name: "second" is also the name of a provider in `) {
		t.Errorf("with a name twice: %v", err)
	}
	if _, err := Read(t.TempDir(), true); err == nil || !strings.Contains(err.Error(), "holds no *.json, *.yaml or *.yml") {
		t.Errorf("an empty directory: %v", err)
	}
	if _, err := Read("/nowhere", true); err == nil {
		t.Error("nothing is accepted")
	}
}
