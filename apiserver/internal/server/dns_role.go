package server

import (
	"context"
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"swiftlet/apiserver/internal/pki"
)

// dnsRole is the name of the role of swiftlet-dns, as kubeadm names it.
const dnsRole = "system:coredns"

// allowDNS lets swiftlet-dns read what it answers queries with.
func allowDNS(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create role of DNS: %w", err)
	}
	read := []string{"list", "watch"}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: dnsRole},
		Rules: []rbacv1.PolicyRule{
			{Verbs: read, APIGroups: []string{""}, Resources: []string{"namespaces", "services"}},
			{Verbs: read, APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}},
		},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: dnsRole},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: dnsRole},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: pki.DNSUser}},
	}
	roles, bindings := client.RbacV1().ClusterRoles(), client.RbacV1().ClusterRoleBindings()
	_, roleErr := roles.Create(ctx, role, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(roleErr) {
		_, roleErr = roles.Update(ctx, role, metav1.UpdateOptions{})
	}
	_, bindingErr := bindings.Create(ctx, binding, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(bindingErr) {
		_, bindingErr = bindings.Update(ctx, binding, metav1.UpdateOptions{})
	}
	if err := errors.Join(roleErr, bindingErr); err != nil {
		return fmt.Errorf("create role of DNS: %w", err)
	}
	return nil
}
