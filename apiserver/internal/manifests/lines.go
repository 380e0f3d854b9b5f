package manifests

import (
	"regexp"
	"strconv"
	"strings"

	yamlnodes "go.yaml.in/yaml/v3"
)

// lineOf returns the line of a field in the file: that of the deepest part of the path that the document has.
func (d document) lineOf(path string) int {
	if node := find(d.nodes, path); node != nil {
		return d.line + node.Line - 1
	}
	return d.line
}

// element is a part of a field's path: .name, [2], ["a.key"] or [name="a"], as the API server writes them.
var element = regexp.MustCompile(`^\.?([^.\[\]]+)|^\[([^\]]+)\]`)

// find returns the deepest node on a path: the key of a field, or an item of a list. It returns nil if the
// first part of the path does not exist.
func find(root *yamlnodes.Node, path string) *yamlnodes.Node {
	var found *yamlnodes.Node
	for at := root; at != nil && path != ""; {
		match := element.FindStringSubmatch(path)
		if match == nil {
			return found
		}
		path = path[len(match[0]):]
		var key *yamlnodes.Node
		if match[1] != "" {
			key, at = field(at, match[1])
		} else {
			key, at = item(at, match[2])
		}
		if key != nil {
			found = key
		}
	}
	return found
}

// field returns the key and the value of a field.
func field(node *yamlnodes.Node, name string) (key, value *yamlnodes.Node) {
	if node.Kind != yamlnodes.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == name {
			return node.Content[i], node.Content[i+1]
		}
	}
	return nil, nil
}

// item returns an item of a list by its index, or by the values of fields: name="a",protocol="TCP". For a map
// it returns the value of a key.
func item(node *yamlnodes.Node, selector string) (found, value *yamlnodes.Node) {
	if node.Kind == yamlnodes.MappingNode {
		return field(node, strings.Trim(selector, `"`))
	}
	if index, err := strconv.Atoi(selector); err == nil {
		if node.Kind == yamlnodes.SequenceNode && index >= 0 && index < len(node.Content) {
			return node.Content[index], node.Content[index]
		}
		return nil, nil
	}
	for _, candidate := range node.Content {
		if matches(candidate, selector) {
			return candidate, candidate
		}
	}
	return nil, nil
}

// matches reports whether a node has the fields of a selector. A field that is missing has its default.
func matches(node *yamlnodes.Node, selector string) bool {
	matched := false
	for condition := range strings.SplitSeq(selector, ",") {
		name, want, _ := strings.Cut(condition, "=")
		_, value := field(node, name)
		if value == nil {
			continue
		}
		if value.Value != strings.Trim(want, `"`) {
			return false
		}
		matched = true
	}
	return matched
}
