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

	"swiftlet/internal/boundedio"
)

// maxManifest limits the size of one file or response.
const maxManifest = 10 << 20

// manifest is the content of one file or URL.
type manifest struct {
	pods       []*v1.Pod
	configMaps []*v1.ConfigMap
	secrets    []*v1.Secret
	// warnings are about unknown fields. They are usually typing errors, but the reference kubelet
	// ignores them, so they are no errors here.
	warnings []string
}

// decode decodes YAML or JSON: one or more documents, and lists in them.
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
		// The file is probably being written.
		return manifest{}, errors.New("no object found")
	}
	return m, nil
}

func (m *manifest) decodeYAML(document []byte) error {
	data := document
	if !json.Valid(document) {
		err := boundedio.CheckAliases(document, maxManifest)
		if err != nil {
			return err
		}
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

// decodeList decodes a List or PodList. The items of a PodList need not have a kind.
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
