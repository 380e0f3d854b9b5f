package manifests

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	yamlnodes "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"swiftlet/internal/boundedio"
)

// extensions are those of the files that are read, as with kubectl.
var extensions = []string{".yaml", ".yml", ".json"}

// maxFile is how large a file may be: more than an API server accepts in one request, several times.
const maxFile = 10 << 20

// document is one object of a file.
type document struct {
	file   string
	line   int // of its first line
	object *unstructured.Unstructured
	nodes  *yamlnodes.Node   // of the object, with lines relative to line; nil if there are none
	hash   [sha256.Size]byte // of the file's name and the content
}

// files is what the directory has.
type files struct {
	documents []document
	problems  []Problem
	// broken are files of which not every document could be read.
	broken map[string]bool
}

// read reads every file of a directory. It fails if the files are unknown.
func read(dir string) (files, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return files{}, fmt.Errorf("read manifests: %w", err)
	}
	all := files{broken: map[string]bool{}}
	for _, e := range entries {
		file := filepath.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), ".") || !slices.Contains(extensions, filepath.Ext(file)) {
			continue
		}
		if info, err := os.Stat(file); err == nil && info.IsDir() {
			continue
		}
		content, err := boundedio.ReadFile(file, maxFile)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since, or a dangling link
		}
		if err != nil {
			all.fail(file, 0, err)
			continue
		}
		all.parse(file, content)
	}
	return all, nil
}

func (f *files) fail(file string, line int, err error) {
	f.broken[file] = true
	f.problems = append(f.problems, Problem{File: file, Line: line, Message: err.Error()})
}

// parse adds the documents of a file. A wrong one does not affect the others.
func (f *files) parse(file string, content []byte) {
	for _, part := range split(content) {
		raw, err := yaml.YAMLToJSONStrict(part.content)
		if err != nil {
			line, text := position(err, part.line)
			f.fail(file, line, errors.New(text))
			continue
		}
		if bytes.Equal(raw, []byte("null")) {
			continue // only comments
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(raw); err != nil {
			f.fail(file, part.line, err)
			continue
		}
		var root yamlnodes.Node
		_ = yamlnodes.Unmarshal(part.content, &root) // it is valid, and the nodes are only for lines
		d := document{file: file, line: part.line, object: object, hash: sha256.Sum256(append([]byte(file), raw...))}
		if len(root.Content) > 0 {
			d.nodes = root.Content[0]
		}
		if object.IsList() {
			f.addList(d)
			continue
		}
		f.add(d)
	}
}

func (f *files) add(d document) {
	if d.object.GetName() == "" {
		f.fail(d.file, d.line, errors.New("metadata.name is missing"))
		return
	}
	f.documents = append(f.documents, d)
}

// addList adds the items of a List.
func (f *files) addList(list document) {
	index := 0
	err := list.object.EachListItem(func(item runtimeObject) error {
		object, ok := item.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("items[%d] is not an object", index)
		}
		raw, err := object.MarshalJSON()
		if err != nil {
			return err
		}
		d := document{file: list.file, line: list.line, object: object, hash: sha256.Sum256(append([]byte(list.file), raw...))}
		if node := find(list.nodes, fmt.Sprintf("items[%d]", index)); node != nil {
			d.nodes, d.line = node, list.line+node.Line-1
			shift(node, node.Line-1)
		}
		f.add(d)
		index++
		return nil
	})
	if err != nil {
		f.fail(list.file, list.line, err)
	}
}

// part is a document in a file.
type part struct {
	line    int // of its first line
	content []byte
}

// split splits a file at the document markers of YAML. YAML libraries stop at the first error.
func split(content []byte) []part {
	var parts []part
	begin, line, first := 0, 1, 1
	for at := 0; at < len(content); line++ {
		end := len(content)
		if i := bytes.IndexByte(content[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		if text := content[at:end]; bytes.HasPrefix(text, []byte("---")) && len(bytes.TrimSpace(text[3:4])) == 0 {
			parts = append(parts, part{first, content[begin:at]})
			begin, first = at, line // the marker stays: content may follow it
		}
		at = end
	}
	return append(parts, part{first, content[begin:]})
}

// linePrefix is how YAML libraries name the line of an error.
var linePrefix = regexp.MustCompile(`(?:yaml: (?:unmarshal errors:\n +)?|^)(?:line (\d+): )?`)

// position returns the line of an error in the file, and the error's text without it.
func position(err error, first int) (line int, text string) {
	text = strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	match := linePrefix.FindStringSubmatchIndex(text)
	if match == nil || match[2] < 0 {
		return first, text
	}
	relative, _ := strconv.Atoi(text[match[2]:match[3]]) // digits
	return first + relative - 1, text[match[1]:]
}

// shift moves lines of a node up.
func shift(node *yamlnodes.Node, by int) {
	node.Line -= by
	for _, child := range node.Content {
		shift(child, by)
	}
}
