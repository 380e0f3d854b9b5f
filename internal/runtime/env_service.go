package runtime

import (
	"cmp"
	"net"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// visibleServices returns the services that a pod of the namespace has variables for, sorted by
// name. A service of the namespace hides the API server's where it has the same name.
func visibleServices(all []*v1.Service, namespace string, links bool) []*v1.Service {
	byName := map[string]*v1.Service{}
	for _, s := range all {
		if s.Spec.ClusterIP == "" || s.Spec.ClusterIP == v1.ClusterIPNone || len(s.Spec.Ports) == 0 {
			continue
		}
		switch {
		case s.Namespace == namespace && links:
			byName[s.Name] = s
		case s.Namespace == v1.NamespaceDefault && s.Name == "kubernetes":
			if byName[s.Name] == nil {
				byName[s.Name] = s
			}
		}
	}
	var visible []*v1.Service
	for _, s := range byName {
		visible = append(visible, s)
	}
	slices.SortFunc(visible, func(a, b *v1.Service) int { return cmp.Compare(a.Name, b.Name) })
	return visible
}

// envsOf returns the variables of services, including those in the form of Docker links.
func envsOf(services []*v1.Service) []EnvVar {
	var envs []EnvVar
	add := func(name, value string) { envs = append(envs, EnvVar{name, value}) }
	for _, s := range services {
		prefix, ip := envName(s.Name), s.Spec.ClusterIP
		add(prefix+"_SERVICE_HOST", ip)
		add(prefix+"_SERVICE_PORT", number(s.Spec.Ports[0].Port))
		for _, port := range s.Spec.Ports {
			if port.Name != "" {
				add(prefix+"_SERVICE_PORT_"+envName(port.Name), number(port.Port))
			}
		}
		for i, port := range s.Spec.Ports {
			protocol := cmp.Or(string(port.Protocol), string(v1.ProtocolTCP))
			lower := strings.ToLower(protocol)
			url := lower + "://" + net.JoinHostPort(ip, number(port.Port))
			if i == 0 {
				add(prefix+"_PORT", url)
			}
			of := prefix + "_PORT_" + number(port.Port) + "_" + strings.ToUpper(protocol)
			add(of, url)
			add(of+"_PROTO", lower)
			add(of+"_PORT", number(port.Port))
			add(of+"_ADDR", ip)
		}
	}
	return envs
}

func envName(name string) string { return strings.ToUpper(strings.ReplaceAll(name, "-", "_")) }

func number(n int32) string { return strconv.Itoa(int(n)) }
