package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/handler3"
)

// openAPIIdle is how long OpenAPI documents are kept after the last request. They take more memory than
// everything else together, and kubectl reads them only for explain and for patches.
const openAPIIdle = time.Minute

const (
	openAPIV2 = "/openapi/v2"
	openAPIV3 = "/openapi/v3"
)

// dropDefinitions forgets the definitions of all types, which documents are built from: those that were
// given, and those that the builders keep in a function that they add to the configuration. They are a third
// of the memory, and each build gets them again.
func dropDefinitions(v2 *common.Config, v3 *common.OpenAPIV3Config) {
	v3.Definitions = nil
	v2.GetOperationIDAndTagsFromRoute, v3.GetOperationIDAndTagsFromRoute = nil, nil
}

// installOpenAPI serves the OpenAPI documents of the built-in types of server, and those that extensions
// publishes for custom resources.
func installOpenAPI(server *genericapiserver.GenericAPIServer, extensions http.Handler, v2 *common.Config, v3 *common.OpenAPIV3Config) {
	container, paths := server.Handler.GoRestfulContainer, server.Handler.NonGoRestfulMux
	second := &onDemand{build: func() http.Handler { return newMergedV2(container, *v2, extensions) }}
	third := &onDemand{build: func() http.Handler {
		m, config := mux.NewPathRecorderMux("openapi-v3"), *v3
		routes.OpenAPI{V3Config: &config}.InstallV3(container, m)
		return m
	}}
	builtIn := map[string]bool{}
	for _, service := range container.RegisteredWebServices() {
		builtIn[openAPIV3+service.RootPath()] = true
	}
	paths.Handle(openAPIV2, second)
	paths.Handle(openAPIV3, mergedIndex(third, extensions))
	paths.HandlePrefix(openAPIV3+"/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if builtIn[strings.TrimSuffix(r.URL.Path, "/")] {
			third.ServeHTTP(w, r)
			return
		}
		extensions.ServeHTTP(w, r)
	}))
}

// mergedIndex serves the index of the documents of all handlers.
func mergedIndex(handlers ...http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all := handler3.OpenAPIV3Discovery{Paths: map[string]handler3.OpenAPIV3DiscoveryGroupVersion{}}
		for _, h := range handlers {
			answer := httptest.NewRecorder()
			request := r.Clone(r.Context())
			request.Header = http.Header{} // no conditions: the index of each handler is needed
			h.ServeHTTP(answer, request)
			var index handler3.OpenAPIV3Discovery
			if err := json.Unmarshal(answer.Body.Bytes(), &index); err != nil || answer.Code != http.StatusOK {
				http.Error(w, fmt.Sprintf("read OpenAPI index: status %d, %v", answer.Code, err), http.StatusInternalServerError)
				return
			}
			maps.Copy(all.Paths, index.Paths)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(all) // the client has gone if it fails
	})
}

// onDemand builds a handler at the first request and drops it when there are none for openAPIIdle.
type onDemand struct {
	build func() http.Handler

	mu      sync.Mutex
	handler http.Handler
	expiry  *time.Timer
}

func (d *onDemand) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.get().ServeHTTP(w, r) }

func (d *onDemand) get() http.Handler {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.handler == nil {
		d.handler = d.build()
		d.expiry = time.AfterFunc(openAPIIdle, d.drop)
	}
	d.expiry.Reset(openAPIIdle)
	return d.handler
}

func (d *onDemand) drop() {
	d.mu.Lock()
	d.handler = nil
	d.mu.Unlock()
	releaseMemory()
}
