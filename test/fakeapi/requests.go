package fakeapi

import (
	"encoding/json"
	"fmt"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
)

func (s *Server) list(t target, o metav1.ListOptions) (runtime.Object, error) {
	selector, err := fields.ParseSelector(o.FieldSelector)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.collection(t.GroupVersionResource)
	var items []object
	for _, o := range c.sorted() {
		if matches(o, t.namespace, selector) {
			items = append(items, o)
		}
	}
	return c.newList(items, s.version)
}

func (s *Server) get(t target) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.collection(t.GroupVersionResource)
	if o := c.objects[t.key()]; o != nil {
		return o.DeepCopyObject(), nil
	}
	return nil, c.notFound(t.name)
}

func decode(body []byte) (runtime.Object, error) {
	o, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return nil, apierrors.NewBadRequest("decode body: " + err.Error())
	}
	return o, nil
}

func (s *Server) create(t target, body []byte) (runtime.Object, error) {
	decoded, err := decode(body)
	if err != nil {
		return nil, err
	}
	if request, ok := decoded.(*authv1.TokenRequest); ok {
		return issueToken(t, request), nil
	}
	o, ok := decoded.(object)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("cannot create %T", decoded))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.collection(t.GroupVersionResource)
	o.SetNamespace(t.namespace)
	if t.Resource == "events" { // not kept: the agent does not read them
		return o, nil
	}
	if c.objects[t.namespace+"/"+o.GetName()] != nil {
		return nil, apierrors.NewAlreadyExists(t.GroupResource(), o.GetName())
	}
	o.SetUID("") // the API server chooses it
	if p, ok := o.(*v1.Pod); ok {
		p.Status = v1.PodStatus{Phase: v1.PodPending}
		p.Generation = 1
	}
	return s.put(c, o).DeepCopyObject(), nil
}

func issueToken(t target, request *authv1.TokenRequest) *authv1.TokenRequest {
	lifetime := time.Hour
	if seconds := request.Spec.ExpirationSeconds; seconds != nil {
		lifetime = time.Duration(*seconds) * time.Second
	}
	request.Status = authv1.TokenRequestStatus{
		Token: "token of " + t.name, ExpirationTimestamp: metav1.NewTime(time.Now().Add(lifetime)),
	}
	return request
}

func (s *Server) update(t target, body []byte) (runtime.Object, error) {
	decoded, err := decode(body)
	if err != nil {
		return nil, err
	}
	o, ok := decoded.(object)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("cannot update %T", decoded))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.collection(t.GroupVersionResource)
	now := c.objects[t.key()]
	if now == nil {
		return nil, c.notFound(t.name)
	}
	if v := o.GetResourceVersion(); v != "" && v != now.GetResourceVersion() {
		return nil, apierrors.NewConflict(t.GroupResource(), t.name, fmt.Errorf("version %s is not %s", v, now.GetResourceVersion()))
	}
	o.SetUID(now.GetUID())
	return s.put(c, o).DeepCopyObject(), nil
}

func (s *Server) patch(t target, kind string, body []byte) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.collection(t.GroupVersionResource)
	if t.Resource == "events" {
		return &v1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: t.name}}, nil
	}
	now := c.objects[t.key()]
	if now == nil {
		return nil, c.notFound(t.name)
	}
	if err := checkPreconditions(c, now, body); err != nil {
		return nil, err
	}
	before, err := json.Marshal(now)
	if err != nil {
		return nil, err
	}
	empty, err := scheme.Scheme.New(c.gvk)
	if err != nil {
		return nil, err
	}
	var after []byte
	switch types.PatchType(kind) {
	case types.StrategicMergePatchType:
		after, err = strategicpatch.StrategicMergePatch(before, body, empty)
	default:
		err = fmt.Errorf("patch type %s is not served", kind)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if err := json.Unmarshal(after, empty); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	next := limitToSubresource(t, now, empty.(object))
	return s.put(c, next).DeepCopyObject(), nil
}

// checkPreconditions compares UID and version of a patch with the object's.
func checkPreconditions(c *collection, now object, patch []byte) error {
	var given struct {
		Metadata struct {
			UID             types.UID `json:"uid"`
			ResourceVersion string    `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(patch, &given); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if uid := given.Metadata.UID; uid != "" && uid != now.GetUID() {
		return apierrors.NewConflict(c.gvr.GroupResource(), now.GetName(), fmt.Errorf("uid %s is not %s", uid, now.GetUID()))
	}
	if v := given.Metadata.ResourceVersion; v != "" && v != now.GetResourceVersion() {
		return apierrors.NewConflict(c.gvr.GroupResource(), now.GetName(), fmt.Errorf("version %s is not %s", v, now.GetResourceVersion()))
	}
	return nil
}

// limitToSubresource keeps the spec of a pod whose status is patched.
func limitToSubresource(t target, now, next object) object {
	before, isPod := now.(*v1.Pod)
	if !isPod || t.subresource != "status" {
		return next
	}
	p := next.(*v1.Pod)
	p.Spec = before.Spec
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = before.DeletionTimestamp, before.DeletionGracePeriodSeconds
	return p
}

func (s *Server) delete(t target, body []byte) (runtime.Object, error) {
	var options metav1.DeleteOptions
	if len(body) > 0 {
		decoded, err := decode(body)
		if err != nil {
			return nil, err
		}
		if o, ok := decoded.(*metav1.DeleteOptions); ok {
			options = *o
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.collection(t.GroupVersionResource)
	if t.name == "" { // of a collection, which is always empty
		return &metav1.Status{Status: metav1.StatusSuccess}, nil
	}
	now := c.objects[t.key()]
	if now == nil {
		return nil, c.notFound(t.name)
	}
	if p := options.Preconditions; p != nil && p.UID != nil && *p.UID != now.GetUID() {
		return nil, apierrors.NewConflict(t.GroupResource(), t.name, fmt.Errorf("uid %s is not %s", *p.UID, now.GetUID()))
	}
	s.remove(c, now)
	return &metav1.Status{Status: metav1.StatusSuccess}, nil
}
