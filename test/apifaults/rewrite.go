package apifaults

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
)

// Rewriting changes every object of a kind in lists, watches and single reads. The node must use JSON.
func Rewriting(kind string, change func(object map[string]any)) Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method != http.MethodGet || !strings.HasSuffix(kindOf(r), " "+kind) {
			next.ServeHTTP(w, r)
			return
		}
		r.Header.Del("Accept-Encoding")
		rewriter := &rewriter{ResponseWriter: w, change: change, watch: IsWatch(r)}
		next.ServeHTTP(rewriter, r)
		rewriter.finish()
	}
}

// rewriter collects a response, or the lines of a watch, and writes them changed.
type rewriter struct {
	http.ResponseWriter
	change func(map[string]any)
	watch  bool
	code   int
	buffer bytes.Buffer
}

func (w *rewriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *rewriter) WriteHeader(code int) {
	w.code = code
	w.Header().Del("Content-Length")
	w.ResponseWriter.WriteHeader(code)
}

func (w *rewriter) Write(p []byte) (int, error) {
	w.buffer.Write(p)
	if !w.watch {
		return len(p), nil
	}
	for {
		line, rest, complete := bytes.Cut(w.buffer.Bytes(), []byte("\n"))
		if !complete {
			return len(p), nil
		}
		if _, err := w.ResponseWriter.Write(append(w.changed(line), '\n')); err != nil {
			return 0, err
		}
		w.buffer = *bytes.NewBuffer(bytes.Clone(rest))
	}
}

// finish writes what was collected of a response that is no watch.
func (w *rewriter) finish() {
	if !w.watch {
		_, _ = w.ResponseWriter.Write(w.changed(w.buffer.Bytes())) // fails only when the node has disconnected
	}
}

// changed returns the text with its objects changed, or as it is if it is no JSON or an error.
func (w *rewriter) changed(text []byte) []byte {
	var value map[string]any
	if json.Unmarshal(text, &value) != nil {
		return text
	}
	switch items, isList := value["items"].([]any); {
	case isList:
		for _, item := range items {
			w.apply(item)
		}
	case value["object"] != nil:
		w.apply(value["object"])
	default:
		w.apply(value)
	}
	out, err := json.Marshal(value)
	if err != nil {
		return text
	}
	return out
}

func (w *rewriter) apply(object any) {
	if fields, ok := object.(map[string]any); ok && fields["kind"] != "Status" {
		w.change(fields)
	}
}
