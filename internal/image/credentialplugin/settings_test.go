package credentialplugin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const validProvider = `
- name: helper
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  matchImages: ["*.example.com:5000/team"]
  defaultCacheDuration: 0s
`

func writeFiles(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The error names the field of each problem.
func TestInvalidSettings(t *testing.T) {
	tokens := func(more string) string {
		return configHeader + validProvider + "  tokenAttributes:\n    " + strings.ReplaceAll(more, "; ", "\n    ")
	}
	const valid = "serviceAccountTokenAudience: a; requireServiceAccount: true; cacheType: Token"
	for _, test := range []struct{ name, config, want string }{
		{"empty file", "", `kind: must be CredentialProviderConfig, not ""`},
		{"not YAML", "{", "did not find expected node content"},
		{"another kind", "apiVersion: kubelet.config.k8s.io/v1\nkind: KubeletConfiguration", `kind: must be CredentialProviderConfig, not "KubeletConfiguration"`},
		{"another version", "apiVersion: kubelet.config.k8s.io/v2\nkind: CredentialProviderConfig",
			`apiVersion: must be one of [kubelet.config.k8s.io/v1 kubelet.config.k8s.io/v1beta1 kubelet.config.k8s.io/v1alpha1], not "kubelet.config.k8s.io/v2"`},
		{"no providers", configHeader, "providers: at least one is required"},
		{"unknown field", configHeader + validProvider + "  timeout: 1s", `unknown field "providers[0].timeout"`},
		{"duplicate field", configHeader + validProvider + "  name: other", `key "name" already set in map`},
		{"wrong type", configHeader + strings.Replace(validProvider, "helper", "[helper]", 1), "cannot unmarshal array into Go struct field CredentialProvider.providers.name of type string"},
		{"no name", configHeader + strings.Replace(validProvider, "helper", `""`, 1), "providers[0].name: is required"},
		{"name is a path", configHeader + strings.Replace(validProvider, "helper", "../helper", 1), `providers[0].name: "../helper" is not a valid program name: it must not be . or .., nor contain / or spaces`},
		{"name with a space", configHeader + strings.Replace(validProvider, "helper", "a helper", 1), `providers[0].name: "a helper" is not a valid program name`},
		{"name is a directory", configHeader + strings.Replace(validProvider, "helper", "..", 1), `providers[0].name: ".." is not a valid program name`},
		{"duplicate name", configHeader + validProvider + validProvider, `providers[1].name: "helper" is also the name of a provider in `},
		{"no plugin version", configHeader + strings.Replace(validProvider, "apiVersion: credentialprovider.kubelet.k8s.io/v1", "args: []", 1),
			`providers[0].apiVersion: must be one of [credentialprovider.kubelet.k8s.io/v1 credentialprovider.kubelet.k8s.io/v1beta1 credentialprovider.kubelet.k8s.io/v1alpha1], not ""`},
		{"no images", configHeader + strings.Replace(validProvider, `["*.example.com:5000/team"]`, "[]", 1), "providers[0].matchImages: at least one is required"},
		{"invalid image pattern", configHeader + strings.Replace(validProvider, `5000`, "port", 1), `providers[0].matchImages[0]: parse "https://*.example.com:port/team": invalid port ":port" after host`},
		{"no duration", configHeader + strings.Replace(validProvider, "defaultCacheDuration: 0s", "args: []", 1), "providers[0].defaultCacheDuration: is required"},
		{"negative duration", configHeader + strings.Replace(validProvider, "0s", "-1s", 1), "providers[0].defaultCacheDuration: -1s is negative"},
		{"two problems", configHeader + strings.NewReplacer("0s", "-1s", "helper", ".").Replace(validProvider),
			"providers[0].name: \".\" is not a valid program name\nproviders[0].defaultCacheDuration: -1s is negative"},
		{"tokens without the feature gate", tokens(valid), "providers[0].tokenAttributes: needs the feature gate KubeletServiceAccountTokenForCredentialProviders"},
		{"tokens in an older config version", strings.Replace(tokens(valid), "config.k8s.io/v1", "config.k8s.io/v1beta1", 1),
			"providers[0].tokenAttributes: kubelet.config.k8s.io/v1beta1 does not have it, use kubelet.config.k8s.io/v1"},
		{"tokens with an older plugin version", strings.Replace(tokens(valid), "kubelet.k8s.io/v1", "kubelet.k8s.io/v1beta1", 1),
			"providers[0].tokenAttributes: needs apiVersion credentialprovider.kubelet.k8s.io/v1"},
		{"no audience", tokens("cacheType: Token"), "providers[0].tokenAttributes.serviceAccountTokenAudience: is required"},
		{"requireServiceAccount missing", tokens("cacheType: Token"), "providers[0].tokenAttributes.requireServiceAccount: is required"},
		{"unknown cache type", tokens("cacheType: Pod"), `providers[0].tokenAttributes.cacheType: must be one of [ServiceAccount Token], not "Pod"`},
		{"required annotations without required account", tokens("requireServiceAccount: false; requiredServiceAccountAnnotationKeys: [a]"),
			"providers[0].tokenAttributes.requiredServiceAccountAnnotationKeys: needs requireServiceAccount to be true"},
		{"invalid annotation key", tokens(`requiredServiceAccountAnnotationKeys: ["a b"]`), `providers[0].tokenAttributes.requiredServiceAccountAnnotationKeys[0]: "a b": name part must consist of`},
		{"duplicate annotation key", tokens("requiredServiceAccountAnnotationKeys: [a, A]; optionalServiceAccountAnnotationKeys: [a]"),
			`providers[0].tokenAttributes.optionalServiceAccountAnnotationKeys[0]: "a" is a duplicate`},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(writeFiles(t, map[string]string{"c.yaml": test.config}), "c.yaml")
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

// The files of a directory are merged in the order of their names.
func TestReadDirectory(t *testing.T) {
	files := map[string]string{
		"20.yaml":    configHeader + strings.Replace(validProvider, "helper", "second", 1),
		"10.yml":     configHeader + strings.Replace(validProvider, "helper", "first", 1),
		"30.json":    `{"apiVersion":"kubelet.config.k8s.io/v1alpha1","kind":"CredentialProviderConfig","providers":[{"name":"third","apiVersion":"credentialprovider.kubelet.k8s.io/v1alpha1","matchImages":["a"],"defaultCacheDuration":"1s"}]}`,
		"05.yaml~":   "ignored",
		"README.txt": "ignored",
	}
	read, err := Read(writeFiles(t, files), true)
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
	if _, err := Read(writeFiles(t, files), true); err == nil || !strings.Contains(err.Error(), `40.yaml: providers[0].name: "second" is also the name of a provider in `) {
		t.Errorf("with a duplicate name: %v", err)
	}
	if _, err := Read(t.TempDir(), true); err == nil || !strings.Contains(err.Error(), "no *.json, *.yaml or *.yml files") {
		t.Errorf("an empty directory: %v", err)
	}
	if _, err := Read("/nowhere", true); err == nil {
		t.Error("a missing path is accepted")
	}
}
