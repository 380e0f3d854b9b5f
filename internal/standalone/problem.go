package standalone

import (
	"fmt"
	"strings"

	"swiftlet/internal/clip"
)

// Problem is a document of a manifest that is not applied, as the API server reports it.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"` // 0 if it is unknown
	Object  string `json:"object"`
	Message string `json:"message"`
}

// String returns one line. Messages of the API server may have several.
func (p Problem) String() string {
	text := p.File
	if p.Line > 0 {
		text += fmt.Sprintf(":%d", p.Line)
	}
	if p.Object != "" {
		text += ": " + p.Object
	}
	return clip.Text(strings.Join(strings.Fields(text+": "+p.Message), " "), clip.Message)
}
