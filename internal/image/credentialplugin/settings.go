package credentialplugin

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubelet "k8s.io/kubelet/config/v1"
	strictjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Settings are the merged configuration files.
type Settings struct {
	Providers []kubelet.CredentialProvider
	// Hash is that of the files' content, as in the reference kubelet's metric.
	Hash string
}

// document is one configuration file.
type document struct {
	name    string
	version string // of its API
	content kubelet.CredentialProviderConfig
}

// Read reads the configuration at path: a file, or a directory whose *.json, *.yaml and *.yml
// files it merges in the order of their names. The error lists every problem, with file and
// field.
func Read(path string, tokens bool) (Settings, error) {
	files, err := configFiles(path)
	if err != nil {
		return Settings{}, fmt.Errorf("read credential plugins: %w", err)
	}
	hash := sha256.New()
	var s Settings
	var problems []error
	definedIn := map[string]string{} // the file by the provider's name
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return Settings{}, fmt.Errorf("read credential plugins: %w", err)
		}
		hash.Write(binary.BigEndian.AppendUint64(nil, uint64(len(data))))
		hash.Write(data)
		d, err := decodeDocument(file, data)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", file, err))
			continue
		}
		problems = append(problems, d.validate(tokens, definedIn)...)
		s.Providers = append(s.Providers, d.content.Providers...)
	}
	if len(s.Providers) == 0 && len(problems) == 0 {
		problems = append(problems, fmt.Errorf("%s: providers: at least one is required", path))
	}
	if len(problems) > 0 {
		return Settings{}, fmt.Errorf("read credential plugins: %w", errors.Join(problems...))
	}
	s.Hash = fmt.Sprintf("sha256:%x", hash.Sum(nil))
	return s, nil
}

func configFiles(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path) // sorted
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains([]string{".json", ".yaml", ".yml"}, filepath.Ext(e.Name())) {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("list %s: no *.json, *.yaml or *.yml files", path)
	}
	return files, nil
}

// configVersions are the versions of the configuration API. They differ in one field.
var configVersions = []string{
	kubelet.SchemeGroupVersion.String(), "kubelet.config.k8s.io/v1beta1", "kubelet.config.k8s.io/v1alpha1"}

// decodeDocument decodes YAML or JSON. Unknown and duplicate fields are errors.
func decodeDocument(name string, data []byte) (*document, error) {
	text, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, err
	}
	var kind metav1.TypeMeta
	if err := strictjson.UnmarshalCaseSensitivePreserveInts(text, &kind); err != nil {
		return nil, err
	}
	if kind.Kind != "CredentialProviderConfig" {
		return nil, fmt.Errorf("kind: must be CredentialProviderConfig, not %q", kind.Kind)
	}
	if !slices.Contains(configVersions, kind.APIVersion) {
		return nil, fmt.Errorf("apiVersion: must be one of %v, not %q", configVersions, kind.APIVersion)
	}
	d := &document{name: name, version: kind.APIVersion}
	strict, err := strictjson.UnmarshalStrict(text, &d.content)
	if err != nil {
		return nil, err
	}
	return d, errors.Join(strict...)
}
