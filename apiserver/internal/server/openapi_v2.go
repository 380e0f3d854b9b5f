package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"

	"github.com/emicklei/go-restful/v3"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/kube-openapi/pkg/aggregator"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// mergedV2 serves the OpenAPI document of version 2: that of built-in types, with the custom resources that
// extensions publishes.
type mergedV2 struct {
	builtIn    *spec.Swagger
	extensions http.Handler

	mu      sync.Mutex
	version string // of the extensions' document
	merged  http.Handler
}

// newMergedV2 builds the document of built-in types.
func newMergedV2(container *restful.Container, config common.Config, extensions http.Handler) *mergedV2 {
	_, builtIn := routes.OpenAPI{Config: &config}.InstallV2(container, mux.NewPathRecorderMux("openapi-v2"))
	return &mergedV2{builtIn: builtIn, extensions: extensions}
}

func (d *mergedV2) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	current, err := d.current(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	current.ServeHTTP(w, r)
}

// current merges the documents if that of the extensions has changed.
func (d *mergedV2) current(r *http.Request) (http.Handler, error) {
	answer := httptest.NewRecorder()
	request := r.Clone(r.Context())
	request.Header = http.Header{} // no conditions: the document is needed
	d.extensions.ServeHTTP(answer, request)
	if answer.Code != http.StatusOK {
		return nil, fmt.Errorf("read OpenAPI document of custom resources: status %d", answer.Code)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	version := answer.Header().Get("Etag")
	if d.merged != nil && version != "" && version == d.version {
		return d.merged, nil
	}
	var custom spec.Swagger
	if err := json.Unmarshal(answer.Body.Bytes(), &custom); err != nil {
		return nil, fmt.Errorf("read OpenAPI document of custom resources: %w", err)
	}
	all, err := mergeV2(d.builtIn, &custom)
	if err != nil {
		return nil, err
	}
	paths := mux.NewPathRecorderMux("openapi-v2")
	handler.NewOpenAPIService(all).RegisterOpenAPIVersionedService(openAPIV2, paths)
	d.merged, d.version = paths, version
	return paths, nil
}

// mergeV2 returns a document with the paths and definitions of both. It changes neither.
func mergeV2(builtIn, custom *spec.Swagger) (*spec.Swagger, error) {
	all := *builtIn
	paths := spec.Paths{VendorExtensible: builtIn.Paths.VendorExtensible, Paths: maps.Clone(builtIn.Paths.Paths)}
	all.Paths, all.Definitions, all.Parameters = &paths, maps.Clone(builtIn.Definitions), maps.Clone(builtIn.Parameters)
	if err := aggregator.MergeSpecsIgnorePathConflictRenamingDefinitionsAndParameters(&all, custom); err != nil {
		return nil, fmt.Errorf("merge OpenAPI documents: %w", err)
	}
	return &all, nil
}
