package main

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"

	"swiftlet/internal/config"
)

const ourModule = "swiftlet"

// checkout is Swiftlet's source code, with the Kubernetes libraries that it links.
type checkout struct {
	*tree
	root     string
	packages []*goPackage
}

func openCheckout(ctx context.Context) (*checkout, error) {
	text, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Path}} {{.Dir}}", "all").Output()
	if err != nil {
		return nil, fmt.Errorf("list modules: %w", err)
	}
	dirs := map[string]string{}
	for line := range strings.Lines(string(text)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		dirs[path] = dir
	}
	c := &checkout{root: dirs[ourModule]}
	c.tree = newTree(func(path string) (string, error) {
		if path != ourModule && !strings.HasPrefix(path, ourModule+"/") && !strings.HasPrefix(path, "k8s.io/") {
			return "", errNotCompared
		}
		module := path
		for dirs[module] == "" {
			cut := strings.LastIndexByte(module, '/')
			if cut < 0 {
				return "", fmt.Errorf("find package %s: no module has it", path)
			}
			module = module[:cut]
		}
		return filepath.Join(dirs[module], strings.TrimPrefix(path, module)), nil
	})
	c.packages, err = c.reach(ourModule + "/cmd/swiftlet")
	return c, err
}

// own returns the packages of this project.
func (c *checkout) own() (found []*goPackage) {
	for _, p := range c.packages {
		if strings.HasPrefix(p.path, ourModule+"/") {
			found = append(found, p)
		}
	}
	return found
}

var usageLine = regexp.MustCompile(`^ +(?:-\w, )?--([a-z0-9-]+)(?: (\S+?)(?:\[=\S+\])?)?   +(.*?)(?: \(default (.*)\))?$`)

// ourFlags reads the help.
func ourFlags() items {
	found := items{}
	current, deprecated, _ := strings.Cut(config.Usage(0), "The flags below are deprecated")
	for suffix, text := range map[string]string{"": current, " deprecated": deprecated} {
		for line := range strings.Lines(text) {
			if parts := usageLine.FindStringSubmatch(strings.TrimRight(line, "\n")); parts != nil {
				kind := parts[2]
				if kind == "" {
					kind = "bool"
				}
				found[parts[1]] = strings.TrimSpace(kind+" "+parts[4]) + suffix
			}
		}
	}
	return found
}

// ourGates reads the table of gates.
func (c *checkout) gates() (items, error) {
	text, err := os.ReadFile(filepath.Join(c.root, "internal/config/feature-gates.tsv"))
	if err != nil {
		return nil, err
	}
	found := items{}
	for line := range strings.Lines(string(text)) {
		cells := append(strings.Split(strings.TrimRight(line, "\n"), "\t"), "", "")
		if strings.HasPrefix(line, "#") {
			continue
		}
		detail := cells[1] + map[string]string{"1": " on", "0": " off"}[cells[2]]
		if cells[3] != "" {
			detail += " " + cells[3]
		}
		if cells[4] != "" {
			detail += " needs " + cells[4]
		}
		found[cells[0]] = detail
	}
	return found, nil
}

// ourConfiguration returns the fields that a configuration file can have, with the values that an
// empty file results in.
func ourConfiguration() (items, error) {
	file, err := os.CreateTemp("", "kubelet-*.yaml")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	if _, err := file.WriteString("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"); err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	loaded, err := config.Load([]string{"--config", file.Name()})
	if err != nil {
		return nil, err
	}
	found := items{}
	describeStruct(found, "", reflect.ValueOf(loaded.Kubelet))
	return found, nil
}

// describeStruct adds the leaves of a struct: fields that are no structs of the API.
func describeStruct(found items, path string, v reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == "-" || f.Name == "TypeMeta" {
			continue
		}
		describeValue(found, join(path, tag), v.Field(i))
	}
}

func describeValue(found items, path string, v reflect.Value) {
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v = reflect.Zero(v.Type().Elem())
			continue
		}
		v = v.Elem()
	}
	switch {
	case v.Kind() == reflect.Struct && !opaque[v.Type().Name()]:
		describeStruct(found, path, v)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct && !opaque[v.Type().Elem().Name()]:
		describeStruct(found, path+"[]", reflect.Zero(v.Type().Elem()))
	case v.Kind() == reflect.Map || v.IsZero():
		found[path] = ""
	default:
		text, _ := json.Marshal(v.Interface())
		found[path] = strings.NewReplacer(`"`, "", "[", "", "]", "").Replace(string(text))
		if found[path] == "0" || found[path] == "false" {
			found[path] = ""
		}
	}
}

// endpoints reads the route tables.
func (c *checkout) endpoints() (items, error) {
	p, err := c.load(ourModule + "/internal/server")
	if err != nil {
		return nil, err
	}
	found := endpoints{}
	for at := range all[*ast.CompositeLit](p) {
		list := at.node.(*ast.CompositeLit)
		if array, ok := list.Type.(*ast.ArrayType); !ok || lastName(array.Elt) != "route" {
			continue
		}
		for _, row := range list.Elts {
			cells := row.(*ast.CompositeLit).Elts
			for _, path := range at.strings(cells[0]) {
				for _, method := range methodsOf(lastName(cells[1])) {
					found.add(path, method)
				}
			}
		}
	}
	return found.items(), nil
}

func methodsOf(name string) []string {
	switch name {
	case "get":
		return []string{"GET"}
	case "post":
		return []string{"POST"}
	case "getOrPost":
		return []string{"GET", "POST"}
	}
	return []string{anyMethod}
}

// node returns the fields of the Node, written by package node.
func (c *checkout) node() (items, error) {
	p, err := c.load(ourModule + "/internal/node")
	if err != nil {
		return nil, err
	}
	var writers []place
	for _, file := range p.files {
		writers = append(writers, place{pkg: p, file: file, node: file})
	}
	return nodeFields(c.tree, writers)
}
