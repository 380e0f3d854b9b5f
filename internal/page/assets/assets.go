// Package assets has the page as files, which page/build makes from the sources in page/src.
package assets

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"path"

	"swiftlet/internal/boundedio"
)

//go:embed dist
var dist embed.FS

// suffix is that of the embedded files: all are compressed.
const suffix = ".gz"

// limit is the size of an uncompressed file.
const limit = 4 << 20

var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".txt":  "text/plain; charset=utf-8",
}

// File is one file of the page.
type File struct {
	// Type is its Content-Type.
	Type string
	// Gzip is its compressed content, which must not be changed.
	Gzip []byte
}

// Open returns the file with this path below /ui/: "index.html", or "assets/" and a name that has a hash of the
// content, so that clients may keep the file for ever.
func Open(name string) (f File, found bool) {
	kind, known := types[path.Ext(name)]
	if !known {
		return File{}, false
	}
	compressed, err := dist.ReadFile("dist/" + name + suffix)
	if err != nil {
		return File{}, false
	}
	return File{Type: kind, Gzip: compressed}, true
}

// Plain is the content for clients that do not accept gzip.
func (f File) Plain() ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(f.Gzip))
	if err != nil {
		return nil, fmt.Errorf("decompress asset: %w", err)
	}
	content, err := boundedio.ReadAll(r, "asset", limit)
	if err != nil {
		return nil, fmt.Errorf("decompress asset: %w", err)
	}
	return content, nil
}
