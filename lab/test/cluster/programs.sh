#!/bin/sh
# Builds the control plane of Kubernetes from its Go modules: programs.sh KUBERNETES ETCD FOLDER, with versions
# as v1.35.0. Kubernetes replaces the modules that it is made of by folders, which a module does not have: they
# are published with the same minor and patch version. Its own go.mod says which they are, so no list is kept here.
set -eu
kubernetes=$1 etcd=$2 to=$3
mkdir -p "$to" build/kubernetes
to=$(cd "$to" && pwd)
cd build/kubernetes
rm -f go.mod go.sum
export GOWORK=off GOFLAGS=-mod=mod
go=${GO:-go}
$go mod init kubernetes > init.log 2>&1
parts=$($go mod download -json "k8s.io/kubernetes@$kubernetes" | sed -n 's/^.*"GoMod": "\(.*\)".*/\1/p')
for part in $(sed -n 's,^.*\(k8s.io/[a-z-]*\) => ./staging/.*,\1,p' "$parts"); do
	$go mod edit -replace="$part=$part@v0.${kubernetes#v1.}"
done
$go mod edit -require="k8s.io/kubernetes@$kubernetes" -require="go.etcd.io/etcd/server/v3@$etcd"
# Each takes some minutes the first time; -o names the program, which etcd's folder does not.
for program in etcd=go.etcd.io/etcd/server/v3 kube-apiserver=k8s.io/kubernetes/cmd/kube-apiserver \
	kube-controller-manager=k8s.io/kubernetes/cmd/kube-controller-manager; do
	echo "    ${program%%=*}"
	$go build -ldflags='-s -w' -o "${program%%=*}" "${program#*=}"
done
# All of them or none, so that a version is never mixed with another.
mv etcd kube-apiserver kube-controller-manager "$to/"
