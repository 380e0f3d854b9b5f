package fakeapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// Call is a request that the server received.
type Call struct {
	Verb        string // get, list, watch, create, update, patch or delete
	Resource    string
	Subresource string
	Namespace   string
	Name        string // empty for lists and watches of several objects
}

func (c Call) String() string {
	s := c.Verb + " " + c.Resource
	if c.Subresource != "" {
		s += "/" + c.Subresource
	}
	if c.Name != "" {
		s += " " + c.Name
	}
	return s
}

// Interceptor handles a call. It decides whether and when the server executes it, and what the
// response is. An error is one of the connection.
type Interceptor func(ctx context.Context, call Call, act func() (*http.Response, error)) (*http.Response, error)

// Server is an API server. All methods may be called from any goroutine.
type Server struct {
	mu          sync.Mutex
	version     int64
	uids        int
	collections map[schema.GroupVersionResource]*collection
	changed     chan struct{} // closed and replaced with every change
	broken      chan struct{} // closed and replaced by BreakWatches
	interceptor Interceptor
}

// New returns a server without objects.
func New() *Server {
	return &Server{
		collections: map[schema.GroupVersionResource]*collection{},
		changed:     make(chan struct{}), broken: make(chan struct{}), version: 1,
	}
}

// SetInterceptor sets the interceptor of all requests; nil removes it.
func (s *Server) SetInterceptor(i Interceptor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.interceptor = i
}

// BreakWatches ends all watches.
func (s *Server) BreakWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.broken)
	s.broken = make(chan struct{})
}

// Compact drops the history: watches that continue at an older version get 410 Gone.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.collections {
		c.history, c.compacted = nil, s.version
	}
}

// Fail is a response with that status.
func Fail(code int, reason metav1.StatusReason, message string) *http.Response {
	return response(code, "application/json", &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	})
}

// Transport returns the transport to this server; it ignores the real one.
func (s *Server) Transport(http.RoundTripper) http.RoundTripper { return s }

// RoundTrip serves one request.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	t, ok := parsePath(r.URL.Path)
	if !ok {
		return Fail(http.StatusNotFound, metav1.StatusReasonNotFound, "no such resource"), nil
	}
	options := listOptions(r)
	call := Call{Verb: verb(r, t, options), Resource: t.Resource, Subresource: t.subresource, Namespace: t.namespace, Name: t.name}
	if call.Name == "" && options.FieldSelector != "" {
		call.Name = options.FieldSelector
	}
	act := func() (*http.Response, error) { return s.serve(r, t, call.Verb, options, body) }
	s.mu.Lock()
	interceptor := s.interceptor
	s.mu.Unlock()
	if interceptor != nil {
		return interceptor(r.Context(), call, act)
	}
	return act()
}

func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer r.Body.Close()
	return io.ReadAll(r.Body)
}

func verb(r *http.Request, t target, o metav1.ListOptions) string {
	switch {
	case r.Method == http.MethodGet && o.Watch:
		return "watch"
	case r.Method == http.MethodGet && t.name == "":
		return "list"
	case r.Method == http.MethodGet:
		return "get"
	}
	return map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete"}[r.Method]
}

func listOptions(r *http.Request) (o metav1.ListOptions) {
	if err := scheme.ParameterCodec.DecodeParameters(r.URL.Query(), schema.GroupVersion{Version: "v1"}, &o); err != nil {
		o = metav1.ListOptions{}
	}
	return o
}

func (s *Server) serve(r *http.Request, t target, verb string, o metav1.ListOptions, body []byte) (*http.Response, error) {
	var result runtime.Object
	var err error
	switch verb {
	case "watch":
		return s.watch(r, t, o)
	case "list":
		result, err = s.list(t, o)
	case "get":
		result, err = s.get(t)
	case "create":
		result, err = s.create(t, body)
	case "update":
		result, err = s.update(t, body)
	case "patch":
		result, err = s.patch(t, r.Header.Get("Content-Type"), body)
	case "delete":
		result, err = s.delete(t, body)
	default:
		err = apierrors.NewMethodNotSupported(t.GroupResource(), r.Method)
	}
	if err != nil {
		return failure(err), nil
	}
	return encodeFor(r, t.GroupVersion(), result)
}

func failure(err error) *http.Response {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	body := status.Status()
	return Fail(int(body.Code), body.Reason, body.Message)
}

// encodeFor encodes an object in the first format that the request accepts.
func encodeFor(r *http.Request, gv schema.GroupVersion, o runtime.Object) (*http.Response, error) {
	if kinds, _, err := scheme.Scheme.ObjectKinds(o); err == nil && len(kinds) == 1 {
		gv = kinds[0].GroupVersion() // a token is of another group than its account
	}
	info := accepted(r)
	encoded, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, gv), o)
	if err != nil {
		return nil, fmt.Errorf("encode response: %w", err)
	}
	return newResponse(http.StatusOK, info.MediaType, io.NopCloser(bytes.NewReader(encoded))), nil
}

func accepted(r *http.Request) runtime.SerializerInfo {
	first, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
	kind, _, err := mime.ParseMediaType(first)
	if err != nil {
		kind = runtime.ContentTypeJSON
	}
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), kind)
	if !ok {
		info, _ = runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	}
	return info
}

func response(code int, kind string, o runtime.Object) *http.Response {
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), kind)
	encoded, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, schema.GroupVersion{Version: "v1"}), o)
	if err != nil {
		panic(err) // a Status can be encoded
	}
	return newResponse(code, kind, io.NopCloser(bytes.NewReader(encoded)))
}

func newResponse(code int, kind string, body io.ReadCloser) *http.Response {
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {kind}}, Body: body, ContentLength: -1,
	}
}
