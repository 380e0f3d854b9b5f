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

// Settings are what the configuration files say.
type Settings struct {
	Providers []kubelet.CredentialProvider
	// Hash stands for the files' content, as the reference kubelet shows it.
	Hash string
}

// document is one configuration file.
type document struct {
	name    string
	version string // of its API
	content kubelet.CredentialProviderConfig
}

// Read reads the configuration at path: a file, or a directory whose *.json, *.yaml and
// *.yml are taken in the order of their names. Every mistake is told, with file and field.
func Read(path string, tokens bool) (Settings, error) {
	files, err := filesAt(path)
	if err != nil {
		return Settings{}, fmt.Errorf("read credential plugins: %w", err)
	}
	hash := sha256.New()
	var s Settings
	var problems []error
	named := map[string]string{} // the file by the provider's name
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
		problems = append(problems, d.validate(tokens, named)...)
		s.Providers = append(s.Providers, d.content.Providers...)
	}
	if len(s.Providers) == 0 && len(problems) == 0 {
		problems = append(problems, fmt.Errorf("%s: providers: at least one is needed", path))
	}
	if len(problems) > 0 {
		return Settings{}, fmt.Errorf("read credential plugins: %w", errors.Join(problems...))
	}
	s.Hash = fmt.Sprintf("sha256:%x", hash.Sum(nil))
	return s, nil
}

func filesAt(path string) ([]string, error) {
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
		return nil, fmt.Errorf("%s holds no *.json, *.yaml or *.yml", path)
	}
	return files, nil
}

// configVersions are the versions of the configuration's API. They differ in one field.
var configVersions = []string{
	kubelet.SchemeGroupVersion.String(), "kubelet.config.k8s.io/v1beta1", "kubelet.config.k8s.io/v1alpha1"}

// decodeDocument reads YAML or JSON. Fields that nobody knows and fields given twice are errors.
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
