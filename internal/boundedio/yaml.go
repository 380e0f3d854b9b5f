package boundedio

import (
	"bytes"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// errAliases is the error of a document whose aliases expand to too much.
type errAliases struct{ limit int64 }

func (e errAliases) Error() string {
	return fmt.Sprintf("the aliases of the document expand to more than %d bytes", e.limit)
}

// CheckAliases returns an error if a YAML document has more than limit bytes with its aliases expanded. A few aliases
// of aliases, or many of one long text, make gigabytes of a small document. The libraries count aliases, not bytes.
func CheckAliases(document []byte, limit int64) error {
	if !bytes.ContainsRune(document, '&') || !bytes.ContainsRune(document, '*') {
		return nil
	}
	var root yaml.Node
	if err := yaml.Unmarshal(document, &root); err != nil {
		return err
	}
	sizes := aliasSizes{limit: limit, known: map[*yaml.Node]int64{}}
	_, err := sizes.of(&root)
	return err
}

// aliasSizes computes what the anchors of a document expand to, each once.
type aliasSizes struct {
	limit int64
	known map[*yaml.Node]int64 // -1 while it is computed
}

func (s *aliasSizes) of(n *yaml.Node) (int64, error) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if size, known := s.known[n]; known {
		if size < 0 {
			return 0, errors.New("an anchor contains itself")
		}
		return size, nil
	}
	s.known[n] = -1
	size := int64(len(n.Value)) + 1
	for _, child := range n.Content {
		more, err := s.of(child)
		if err != nil {
			return 0, err
		}
		if size += more; size > s.limit {
			return 0, errAliases{s.limit}
		}
	}
	s.known[n] = size
	return size, nil
}
