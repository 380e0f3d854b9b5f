package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
	kubelet "k8s.io/kubelet/config/v1beta1"
	strictjson "sigs.k8s.io/json"
	apiyaml "sigs.k8s.io/yaml"
)

// document is one configuration file: its values as JSON, and the lines they stand on.
type document struct {
	name   string
	values map[string]any
	lines  lineIndex
}

func readDocument(name string) (*document, Errors, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, nil, fmt.Errorf("read configuration: %w", err)
	}
	d, wrong := parseDocument(name, data)
	return d, wrong, nil
}

// parseDocument reads YAML or JSON and holds it against the API's fields and types. The
// document is left with what is right in it; it is nil when the file cannot be read at all.
func parseDocument(name string, data []byte) (*document, Errors) {
	var root yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(data)).Decode(&root); errors.Is(err, io.EOF) {
		return nil, wholeFile(name, errors.New("the file is empty"))
	} else if err != nil {
		return nil, wholeFile(name, err)
	}
	asJSON, err := apiyaml.YAMLToJSON(data)
	if err != nil {
		return nil, wholeFile(name, err)
	}
	values, err := decodeValues(asJSON)
	if err != nil {
		return nil, wholeFile(name, errors.New("line 1: the file is not a set of fields"))
	}
	lines, problems := indexLines(&root)
	d := &document{name: name, values: values, lines: lines}
	problems = append(problems, d.wrongKind()...)
	problems = append(problems, checkAgainst(reflect.TypeFor[kubelet.KubeletConfiguration](), "", values)...)
	origins := Origins{}
	for _, p := range problems {
		origins[p.field] = Origin{File: name, Line: lines.of(p.field)}
	}
	return d, locate(problems, origins)
}

// decodeValues reads a JSON object and keeps its numbers as they were written.
func decodeValues(text []byte) (values map[string]any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&values); err != nil {
		return nil, fmt.Errorf("decode configuration: %w", err)
	}
	if values == nil {
		return nil, errors.New("decode configuration: null")
	}
	return values, nil
}

var yamlLine = regexp.MustCompile(`^(?:yaml: )?line (\d+): (.*)`)

// wholeFile is an error that has no field; the YAML libraries put the line in the text.
func wholeFile(name string, err error) Errors {
	e := &FieldError{Origin: Origin{File: name}, What: err.Error()}
	if m := yamlLine.FindStringSubmatch(e.What); m != nil {
		e.Origin.Line, _ = strconv.Atoi(m[1])
		e.What = m[2]
	}
	return Errors{e}
}

func (d *document) wrongKind() (problems []problem) {
	want := func(field, value string) {
		if d.values[field] != value {
			problems = append(problems, problem{field, "must be " + value})
		}
	}
	want("apiVersion", kubelet.SchemeGroupVersion.String())
	want("kind", "KubeletConfiguration")
	return problems
}

func decodeStrict(name string, values map[string]any, kc *kubelet.KubeletConfiguration) error {
	text, err := json.Marshal(values)
	if err != nil {
		return fmt.Errorf("decode %s: %w", name, err)
	}
	strict, err := strictjson.UnmarshalStrict(text, kc)
	if err != nil {
		return fmt.Errorf("decode %s: %w", name, err)
	}
	if len(strict) > 0 {
		return fmt.Errorf("decode %s: %w", name, strict[0])
	}
	return nil
}

// record notes where the document's values stand: maps and structs by key, lists as one.
func (d *document) record(origins Origins) {
	d.recordBelow(origins, "", d.values)
	origins.forget("apiVersion")
	origins.forget("kind")
}

func (d *document) recordBelow(origins Origins, path string, values map[string]any) {
	for key, value := range values {
		below := join(path, key)
		switch value := value.(type) {
		case nil:
			origins.forget(below)
		case map[string]any:
			d.recordBelow(origins, below, value)
		default:
			origins.set(below, Origin{File: d.name, Line: d.lines.of(below)})
		}
	}
}

// absolute resolves the paths of a configuration file against the file's own directory.
func absolute(kc *kubelet.KubeletConfiguration, file string) error {
	abs, err := filepath.Abs(file)
	if err != nil {
		return fmt.Errorf("resolve paths of %s: %w", file, err)
	}
	for _, p := range []*string{
		&kc.StaticPodPath, &kc.Authentication.X509.ClientCAFile, &kc.TLSCertFile, &kc.TLSPrivateKeyFile,
		kc.ResolverConfig, &kc.VolumePluginDir, &kc.PodLogsDir,
	} {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(filepath.Dir(abs), *p)
		}
	}
	return nil
}
