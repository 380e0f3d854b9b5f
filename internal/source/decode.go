package source

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// maxManifest bounds what is read of one file or URL.
const maxManifest = 10 << 20

// manifest is what one file or URL says.
type manifest struct {
	pods       []*v1.Pod
	configMaps []*v1.ConfigMap
	secrets    []*v1.Secret
	// warnings are about fields nobody knows. They are most often typing errors, but the
	// reference kubelet overlooks them, and so must we.
	warnings []string
}

// decode reads YAML or JSON, several documents if there are, and lists within them.
func decode(data []byte) (manifest, error) {
	var m manifest
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for i := 1; ; i++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = m.decodeYAML(document)
		}
		if err != nil {
			return manifest{}, fmt.Errorf("document %d: %w", i, err)
		}
	}
	if len(m.pods)+len(m.configMaps)+len(m.secrets) == 0 {
		// More likely a file that is being written than one that wants nothing to run.
		return manifest{}, errors.New("no object found")
	}
	return m, nil
}

func (m *manifest) decodeYAML(document []byte) error {
	data := document
	if !json.Valid(document) {
		var err error
		if data, err = yaml.YAMLToJSON(document); err != nil {
			return err
		}
	}
	if string(bytes.TrimSpace(data)) == "null" {
		return nil // nothing but comments
	}
	return m.decodeJSON(data)
}

func (m *manifest) decodeJSON(data []byte) error {
	var kind metav1.TypeMeta
	if err := json.Unmarshal(data, &kind); err != nil {
		return err
	}
	if kind.APIVersion != "v1" {
		return fmt.Errorf("apiVersion %q of kind %q is not known here, want v1", kind.APIVersion, kind.Kind)
	}
	switch kind.Kind {
	case "Pod":
		return decodeInto(m, data, &m.pods)
	case "ConfigMap":
		return decodeInto(m, data, &m.configMaps)
	case "Secret":
		return decodeInto(m, data, &m.secrets)
	case "List", "PodList":
		return m.decodeList(data, kind)
	}
	return fmt.Errorf("kind %q is not known here, want Pod", kind.Kind)
}

// decodeList: the items of a PodList need not repeat their kind.
func (m *manifest) decodeList(data []byte, list metav1.TypeMeta) error {
	var items struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(data, &items); err != nil {
		return err
	}
	for i, item := range items.Items {
		var err error
		if list.Kind == "PodList" {
			err = decodeInto(m, item, &m.pods)
		} else {
			err = m.decodeJSON(item)
		}
		if err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
	}
	return nil
}

func decodeInto[T any](m *manifest, data []byte, list *[]*T) error {
	object := new(T)
	unknown, err := kjson.UnmarshalStrict(data, object)
	if err != nil {
		return err
	}
	for _, field := range unknown {
		m.warnings = append(m.warnings, field.Error())
	}
	*list = append(*list, object)
	return nil
}
