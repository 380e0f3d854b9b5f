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

	"swiftlet/internal/boundedio"
)

// maxExpanded limits a configuration with its aliases expanded.
const maxExpanded = 10 << 20

// document is a configuration file: its values as JSON, and their line numbers.
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
	d, errs := parseDocument(name, data)
	return d, errs, nil
}

// parseDocument parses YAML or JSON and checks it against the fields and types of the API. The
// document contains only valid fields. It is nil if the file cannot be parsed.
func parseDocument(name string, data []byte) (*document, Errors) {
	var root yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(data)).Decode(&root); errors.Is(err, io.EOF) {
		return nil, fileError(name, errors.New("the file is empty"))
	} else if err != nil {
		return nil, fileError(name, err)
	}
	if err := boundedio.CheckAliases(data, maxExpanded); err != nil {
		return nil, fileError(name, err)
	}
	asJSON, err := apiyaml.YAMLToJSON(data)
	if err != nil {
		return nil, fileError(name, err)
	}
	values, err := decodeValues(asJSON)
	if err != nil {
		return nil, fileError(name, errors.New("line 1: the file is not a set of fields"))
	}
	lines, problems := newLineIndex(&root)
	d := &document{name: name, values: values, lines: lines}
	problems = append(problems, d.checkKind()...)
	problems = append(problems, checkType(reflect.TypeFor[kubelet.KubeletConfiguration](), "", values)...)
	origins := Origins{}
	for _, p := range problems {
		origins[p.field] = Origin{File: name, Line: lines.of(p.field)}
	}
	return d, locate(problems, origins)
}

// decodeValues decodes a JSON object. Numbers keep their notation.
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

// fileError is an error without a field. It takes the line number from the text of YAML errors.
func fileError(name string, err error) Errors {
	e := &FieldError{Origin: Origin{File: name}, Message: err.Error()}
	if m := yamlLine.FindStringSubmatch(e.Message); m != nil {
		e.Origin.Line, _ = strconv.Atoi(m[1])
		e.Message = m[2]
	}
	return Errors{e}
}

func (d *document) checkKind() (problems []problem) {
	require := func(field, value string) {
		if d.values[field] != value {
			problems = append(problems, problem{field: field, message: "must be " + value})
		}
	}
	require("apiVersion", kubelet.SchemeGroupVersion.String())
	require("kind", "KubeletConfiguration")
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

// recordOrigins records the lines of the document's values: by key for maps and structs, one for
// each list.
func (d *document) recordOrigins(origins Origins) {
	d.recordNested(origins, "", d.values)
	origins.clear("apiVersion")
	origins.clear("kind")
}

func (d *document) recordNested(origins Origins, path string, values map[string]any) {
	for key, value := range values {
		field := join(path, key)
		switch value := value.(type) {
		case nil:
			origins.clear(field)
		case map[string]any:
			d.recordNested(origins, field, value)
		default:
			origins.set(field, Origin{File: d.name, Line: d.lines.of(field)})
		}
	}
}

// resolvePaths makes relative paths of a configuration file relative to the file's directory.
func resolvePaths(kc *kubelet.KubeletConfiguration, file string) error {
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
