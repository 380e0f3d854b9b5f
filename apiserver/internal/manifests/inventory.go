package manifests

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// The inventory is a ConfigMap: it is stored, backed up and restored together with the objects.
const (
	inventoryNamespace = metav1.NamespaceSystem
	inventoryName      = "swiftlet-manifests"
	inventoryKey       = "objects"
)

// identity names an object in the API.
type identity struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

func (i identity) String() string {
	text := i.Kind + " " + i.Name
	if i.Namespace != "" {
		text = i.Kind + " " + i.Namespace + "/" + i.Name
	}
	return text
}

// entry is an object that was applied, and the file that had it last.
type entry struct {
	identity
	File string `json:"file"`
}

// inventory remembers which objects were applied.
type inventory struct {
	client  typedv1.ConfigMapsGetter
	entries []entry // nil until it was read
	stored  string
}

func (i *inventory) load(ctx context.Context) error {
	if i.entries != nil {
		return nil
	}
	stored, err := i.client.ConfigMaps(inventoryNamespace).Get(ctx, inventoryName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		i.entries = []entry{}
		return nil
	}
	if err != nil {
		return fmt.Errorf("read inventory: %w", err)
	}
	entries := []entry{}
	if err := json.Unmarshal([]byte(stored.Data[inventoryKey]), &entries); err != nil {
		return fmt.Errorf("read inventory: %w", err)
	}
	i.entries, i.stored = entries, stored.Data[inventoryKey]
	return nil
}

// add stores the object before it is applied: one that is not in the inventory is never removed.
func (i *inventory) add(ctx context.Context, e entry) error {
	at := slices.IndexFunc(i.entries, func(have entry) bool { return have.identity == e.identity })
	if at >= 0 && i.entries[at] == e {
		return nil
	}
	entries := slices.Clone(i.entries)
	if at >= 0 {
		entries[at] = e
	} else {
		entries = append(entries, e)
	}
	return i.store(ctx, entries)
}

func (i *inventory) remove(ctx context.Context, e entry) error {
	return i.store(ctx, slices.DeleteFunc(slices.Clone(i.entries), func(have entry) bool { return have == e }))
}

func (i *inventory) store(ctx context.Context, entries []entry) error {
	encoded, err := json.Marshal(entries)
	if err != nil {
		return fmt.Errorf("write inventory: %w", err)
	}
	maps := i.client.ConfigMaps(inventoryNamespace)
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: inventoryName, Namespace: inventoryNamespace},
		Data:       map[string]string{inventoryKey: string(encoded)},
	}
	if i.stored == "" {
		_, err = maps.Create(ctx, object, metav1.CreateOptions{FieldManager: fieldManager})
	} else {
		_, err = maps.Update(ctx, object, metav1.UpdateOptions{FieldManager: fieldManager})
	}
	if err != nil {
		return fmt.Errorf("write inventory: %w", err)
	}
	i.entries, i.stored = entries, string(encoded)
	return nil
}
