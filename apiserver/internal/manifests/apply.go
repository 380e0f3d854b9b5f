package manifests

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/utils/ptr"
)

// errReplacing is the reason to retry while a pod ends that another version replaces.
var errReplacing = errors.New("waits for the end of the pod's former version")

// before are kinds that others need. They are applied first.
var before = []string{"Namespace", "CustomResourceDefinition", "PriorityClass", "RuntimeClass", "StorageClass", "ServiceAccount", "ConfigMap", "Secret", "PersistentVolume", "PersistentVolumeClaim"}

// mapper reads which kinds are served. It is not kept: the objects of files rarely change.
func (d *Directory) mapper() (meta.RESTMapper, error) {
	groups, err := restmapper.GetAPIGroupResources(d.discovery)
	if err != nil {
		return nil, err
	}
	return restmapper.NewDiscoveryRESTMapper(groups), nil
}

// applyAll applies documents that have changed or have failed before. wanted are the objects of all documents,
// as far as they are known.
func (d *Directory) applyAll(ctx context.Context, mapper meta.RESTMapper, all files) (problems []Problem, wanted map[identity]bool, done bool) {
	documents := slices.Clone(all.documents)
	slices.SortStableFunc(documents, func(a, b document) int { return cmp.Compare(rank(a), rank(b)) })
	wanted, done, d.replacing = map[identity]bool{}, true, false
	first := map[identity]document{}
	for _, doc := range documents {
		id, resource, err := d.locate(mapper, doc)
		if err != nil {
			done = false // the kind may be served later
			all.broken[doc.file] = true
			problems = append(problems, Problem{File: doc.file, Line: doc.lineOf("kind"), Object: id.String(), Message: err.Error()})
			continue
		}
		if other, taken := first[id]; taken {
			problems = append(problems, Problem{File: doc.file, Line: doc.line, Object: id.String(), Message: fmt.Sprintf("%s:%d has this object, too", other.file, other.line)})
			continue
		}
		first[id], wanted[id] = doc, true
		if hash, ok := d.applied[id]; ok && hash == doc.hash {
			continue
		}
		err = d.apply(ctx, id, resource, doc)
		if err == nil {
			d.deps.Log.Info("manifests: applied", "file", doc.file, "line", doc.line, "object", id.String())
			d.applied[id] = doc.hash
			delete(d.failures, id)
			continue
		}
		done = false
		d.replacing = d.replacing || errors.Is(err, errReplacing)
		delete(d.applied, id)
		d.failures[id]++
		if line, wrong := wrongDocument(doc, err); wrong || d.failures[id] > quietRetries {
			problems = append(problems, Problem{File: doc.file, Line: line, Object: id.String(), Message: err.Error()})
		}
	}
	return problems, wanted, done
}

func rank(d document) int {
	if at := slices.Index(before, d.object.GetKind()); at >= 0 {
		return at
	}
	return len(before)
}

// locate returns the identity and the resource of a document's object.
func (d *Directory) locate(mapper meta.RESTMapper, doc document) (identity, dynamic.ResourceInterface, error) {
	kind := doc.object.GroupVersionKind()
	id := identity{Group: kind.Group, Kind: kind.Kind, Namespace: doc.object.GetNamespace(), Name: doc.object.GetName()}
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return id, nil, fmt.Errorf("kind %s of %s is not served", kind.Kind, cmp.Or(kind.GroupVersion().String(), "no apiVersion"))
	}
	if err != nil {
		return id, nil, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		id.Namespace = ""
		return id, d.objects.Resource(mapping.Resource), nil
	}
	id.Namespace = cmp.Or(id.Namespace, metav1.NamespaceDefault)
	return id, d.objects.Resource(mapping.Resource).Namespace(id.Namespace), nil
}

// apply applies a document. It takes fields over from other managers: the file decides.
func (d *Directory) apply(ctx context.Context, id identity, resource dynamic.ResourceInterface, doc document) error {
	isPod := id.Group == "" && id.Kind == "Pod"
	if isPod { // a change of a pod that ends would be lost
		if pod, err := resource.Get(ctx, id.Name, metav1.GetOptions{}); err == nil && pod.GetDeletionTimestamp() != nil {
			return errReplacing
		}
	}
	if err := d.inventory.add(ctx, entry{id, doc.file}); err != nil {
		return err
	}
	object := doc.object.DeepCopy()
	object.SetNamespace(id.Namespace)
	annotations := map[string]string{fileAnnotation: filepath.Base(doc.file)}
	maps.Copy(annotations, object.GetAnnotations())
	object.SetAnnotations(annotations)
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	_, err = resource.Patch(ctx, id.Name, types.ApplyPatchType, body, metav1.PatchOptions{
		FieldManager: fieldManager, Force: ptr.To(true), FieldValidation: metav1.FieldValidationStrict,
	})
	if isPod && apierrors.IsInvalid(err) && mayNotChange.MatchString(err.Error()) {
		return d.replacePod(ctx, resource, id.Name)
	}
	return err
}

// mayNotChange matches the error of the API server about a change of an existing pod.
var mayNotChange = regexp.MustCompile(`pod updates may not|field is immutable`)

// replacePod deletes a pod, so that it is created again from the file.
func (d *Directory) replacePod(ctx context.Context, resource dynamic.ResourceInterface, name string) error {
	pod, err := resource.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := resource.Delete(ctx, name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.GetUID()))}); err != nil {
		return fmt.Errorf("replace pod: %w", err)
	}
	return errReplacing
}

// wrongField matches the path of a field in the API server's error about an object that does not fit its schema.
var wrongField = regexp.MustCompile(`(\.\S+): (?:field not declared in schema|expected )`)

// wrongDocument reports whether an error is due to the document, and the line of the field if the error has one.
func wrongDocument(doc document, err error) (line int, wrong bool) {
	if match := wrongField.FindStringSubmatch(err.Error()); match != nil {
		return doc.lineOf(match[1]), true
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			if cause.Field != "" {
				return doc.lineOf(cause.Field), true
			}
		}
	}
	return doc.line, apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// prune deletes objects that no document has any more. It leaves those of files that were not read completely.
func (d *Directory) prune(ctx context.Context, mapper meta.RESTMapper, wanted map[identity]bool, broken map[string]bool) (problems []Problem, done bool) {
	done = true
	for _, e := range slices.Backward(slices.Clone(d.inventory.entries)) { // objects before what they need
		if wanted[e.identity] || broken[e.File] {
			continue
		}
		err := d.delete(ctx, mapper, e.identity)
		if err == nil {
			err = d.inventory.remove(ctx, e)
		}
		if err != nil {
			done = false
			if d.failures[e.identity]++; d.failures[e.identity] > quietRetries {
				problems = append(problems, Problem{File: e.File, Object: e.identity.String(), Message: "delete: " + err.Error()})
			}
			continue
		}
		delete(d.applied, e.identity)
		delete(d.failures, e.identity)
		d.deps.Log.Info("manifests: deleted", "file", e.File, "object", e.identity.String())
	}
	return problems, done
}

// delete deletes an object unless it was created again by someone else.
func (d *Directory) delete(ctx context.Context, mapper meta.RESTMapper, id identity) error {
	mapping, err := mapper.RESTMapping(schema.GroupKind{Group: id.Group, Kind: id.Kind})
	if meta.IsNoMatchError(err) && d.failures[id] > absentKindRetries {
		return nil // with its kind, the object is gone
	}
	if err != nil {
		return err
	}
	var resource dynamic.ResourceInterface = d.objects.Resource(mapping.Resource)
	if id.Namespace != "" {
		resource = d.objects.Resource(mapping.Resource).Namespace(id.Namespace)
	}
	object, err := resource.Get(ctx, id.Name, metav1.GetOptions{})
	if isGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, ours := object.GetAnnotations()[fileAnnotation]; !ours {
		return nil
	}
	err = resource.Delete(ctx, id.Name, metav1.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(object.GetUID())), PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
	})
	if isGone(err) {
		return nil
	}
	return err
}

// isGone reports whether an object does not exist. An API server that has just started also answers with 404 for
// kinds that it does not serve yet.
func isGone(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

func compare(a, b Problem) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Message, b.Message))
}
