package image

import (
	"maps"
	"net"
	"net/url"
	"path"
	"slices"
	"strings"
)

// defaultHost is how docker configurations name the registry of names without a host.
const defaultHost = "index.docker.io"

// Keyring finds credentials by an image's repository.
type Keyring struct {
	// logins are keyed by host and, where given, the beginning of a path. The host's parts
	// may be patterns: "*.example.com/team".
	logins map[string][]login
}

func (k *Keyring) add(logins map[string]login) {
	if k.logins == nil {
		k.logins = map[string][]login{}
	}
	for _, where := range slices.Sorted(maps.Keys(logins)) {
		if key, ok := keyOf(where); ok {
			k.logins[key] = append(k.logins[key], logins[where])
		}
	}
}

// keyOf strips what docker configurations may have around host and path: a scheme, and
// the API's version.
func keyOf(where string) (key string, ok bool) {
	if !strings.HasPrefix(where, "https://") && !strings.HasPrefix(where, "http://") {
		where = "https://" + where
	}
	u, err := url.Parse(where)
	if err != nil {
		return "", false
	}
	p := u.Path
	if strings.HasPrefix(p, "/v1/") || strings.HasPrefix(p, "/v2/") {
		p = p[len("/v1"):]
	}
	if p == "/" {
		p = ""
	}
	return u.Host + p, true
}

// Lookup returns what may open the repository ("registry.example.com/team/app"), the most
// specific first. Several may fit, as while a password is being changed.
func (k *Keyring) Lookup(repository string) []Credential {
	var found []login
	keys := slices.Sorted(maps.Keys(k.logins))
	slices.Reverse(keys)
	for _, key := range keys {
		if Fits(key, repository) {
			found = append(found, k.logins[key]...)
		}
	}
	if len(found) == 0 && onDefaultHost(repository) {
		found = k.logins[defaultHost]
	}
	var all []Credential
	for _, l := range found {
		all = append(all, l.credential())
	}
	return all
}

// Fits reports whether a key opens the repository: same port, each part of the host by
// its pattern, and the path by its beginning.
func Fits(key, repository string) bool {
	k, err := url.Parse("https://" + key)
	if err != nil {
		return false
	}
	r, err := url.Parse("https://" + repository)
	if err != nil {
		return false
	}
	keyParts, keyPort := splitHost(k.Host)
	parts, port := splitHost(r.Host)
	if keyPort != port || len(keyParts) != len(parts) || !strings.HasPrefix(r.Path, k.Path) {
		return false
	}
	for i := range parts {
		if ok, err := path.Match(keyParts[i], parts[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

func splitHost(hostPort string) (parts []string, port string) {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		host, port = hostPort, ""
	}
	return strings.Split(host, "."), port
}

// onDefaultHost reports whether the repository is Docker Hub's: its first part is no host.
func onDefaultHost(repository string) bool {
	first, _, more := strings.Cut(repository, "/")
	if first == "" {
		return false
	}
	return !more || first == "docker.io" || first == defaultHost || !strings.ContainsAny(first, ".:")
}
