{{/* How many engines a collector has. */}}
{{- define "otelcol-vllm.engines" -}}
{{ default (ternary 1000 100 (eq (include "otelcol-vllm.component" .) "pool")) .Values.engines }}
{{- end }}

{{/* Requests and limits by the number of engines: a quarter of a GiB, and three for 4000 engines,
     of which docs/why/performance.md measured less than half. */}}
{{- define "otelcol-vllm.resources" -}}
{{- $engines := int (include "otelcol-vllm.engines" .) -}}
{{- $mib := max 512 (add 256 (div (mul $engines 768) 1000)) -}}
{{- $memory := ternary (printf "%dGi" (div $mib 1024)) (printf "%dMi" $mib) (eq (mod $mib 1024) 0) -}}
{{- $own := deepCopy .Values.resources -}}
{{- $requests := dict "cpu" (printf "%dm" (max 50 (div $engines 10))) "memory" (printf "%dMi" (div $mib 2)) "ephemeral-storage" "64Mi" -}}
{{- $limits := dict "cpu" (ternary "2" "1" (gt $mib 512)) "memory" $memory "ephemeral-storage" (ternary "2Gi" "256Mi" (eq .Values.mode "agent")) -}}
{{- /* Whoever sets one side means it: the other one follows, because a request is never above its limit. */ -}}
{{- range $kind := list "cpu" "memory" "ephemeral-storage" -}}
{{- $request := dig "requests" $kind "" $own -}}
{{- $limit := dig "limits" $kind "" $own -}}
{{- if and $limit (not $request) (gt (float64 (include "otelcol-vllm.amount" (get $requests $kind))) (float64 (include "otelcol-vllm.amount" $limit))) -}}
{{- $_ := set $requests $kind $limit -}}
{{- else if and $request (not $limit) (gt (float64 (include "otelcol-vllm.amount" $request)) (float64 (include "otelcol-vllm.amount" (get $limits $kind)))) -}}
{{- $_ := set $limits $kind $request -}}
{{- end -}}
{{- end -}}
{{- mergeOverwrite (dict "requests" $requests "limits" $limits) $own | toYaml -}}
{{- end }}

{{/* A quantity as a number: cores, or MiB. */}}
{{- define "otelcol-vllm.amount" -}}
{{- $text := toString . -}}
{{- $number := float64 (regexFind "^[0-9.]+" $text) -}}
{{- if hasSuffix "m" $text }}{{ divf $number 1000 }}{{ else if hasSuffix "Gi" $text }}{{ mulf $number 1024 }}{{ else }}{{ $number }}{{ end -}}
{{- end }}

{{/* 25/32 of the memory limit, so that Go collects garbage before the kernel kills. */}}
{{- define "otelcol-vllm.gomemlimit" -}}
{{- $limit := (include "otelcol-vllm.resources" . | fromYaml).limits.memory -}}
{{- $number := regexFind "^[0-9]+" $limit | int64 -}}
{{ div (mul $number (ternary 1024 1 (hasSuffix "Gi" $limit)) 25) 32 }}MiB
{{- end }}

{{/* The pods of a mode. */}}
{{- define "otelcol-vllm.pod" -}}
{{- $component := include "otelcol-vllm.component" . -}}
{{- $name := include "otelcol-vllm.name" . -}}
{{- $token := has .Values.mode (list "pool" "gateway") -}}
metadata:
  labels:
    {{- include "otelcol-vllm.selector" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    # A change of the configuration rolls the pods.
    checksum/configuration: {{ include (print $.Template.BasePath "/configuration.yaml") . | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ $name }}
  # For the discovery of pods.
  automountServiceAccountToken: true
  enableServiceLinks: false
  {{- with .Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if or .Values.tolerations (eq $component "agent") }}
  tolerations:
    {{- if eq $component "agent" }}
    # Nodes with GPUs are usually tainted so that other pods stay away.
    - key: nvidia.com/gpu
      operator: Exists
      effect: NoSchedule
    {{- end }}
    {{- with .Values.tolerations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- if .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml .Values.topologySpreadConstraints | nindent 4 }}
  {{- else if eq $component "pool" }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "otelcol-vllm.selector" . | nindent 10 }}
  {{- end }}
  securityContext:
    {{- toYaml .Values.podSecurityContext | nindent 4 }}
  containers:
    - name: collector
      image: {{ include "otelcol-vllm.image" . }}
      {{- with .Values.image.pullPolicy }}
      imagePullPolicy: {{ . }}
      {{- end }}
      args:
        - --config=/etc/otelcol-vllm/shared/collector.yaml
        - --config=/etc/otelcol-vllm/shared/exporter.yaml
        {{- if include "otelcol-vllm.both" . }}
        - --config=/etc/otelcol-vllm/shared/scrape.yaml
        {{- end }}
        {{- if eq $component "pool" }}
        - --config=/etc/otelcol-vllm/own/processors.yaml
        {{- end }}
        - --config=/etc/otelcol-vllm/own/receivers.yaml
        {{- if .Values.backend.preset }}
        - --config=/etc/otelcol-vllm/shared/backend.yaml
        {{- end }}
        - --feature-gates=+extension.healthcheck.useComponentStatus
        {{- if .Values.objectives }}
        - --config=/etc/otelcol-vllm/own/objectives.yaml
        {{- end }}
        {{- if .Values.probes }}
        - --config=/etc/otelcol-vllm/shared/probes.yaml
        {{- end }}
        {{- if include "otelcol-vllm.extra" . }}
        - --config=/etc/otelcol-vllm/own/own.yaml
        {{- end }}
      env:
        - name: POD_IP
          valueFrom:
            fieldRef:
              fieldPath: status.podIP
        - name: POD_NAME
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        - name: POD_NAMESPACE
          valueFrom:
            fieldRef:
              fieldPath: metadata.namespace
        {{- if eq .Values.mode "agent" }}
        - name: K8S_NODE_NAME
          valueFrom:
            fieldRef:
              fieldPath: spec.nodeName
        {{- else if eq .Values.mode "pool" }}
        - name: POOL_INDEX
          valueFrom:
            fieldRef:
              fieldPath: metadata.labels['apps.kubernetes.io/pod-index']
        {{- else if eq .Values.mode "shards" }}
        - name: SHARD
          valueFrom:
            fieldRef:
              fieldPath: metadata.labels['apps.kubernetes.io/pod-index']
        {{- end }}
        - name: GOMEMLIMIT
          value: {{ include "otelcol-vllm.gomemlimit" . }}
        {{- range $i, $header := .Values.backend.headers }}
        - name: BACKEND_HEADER_{{ $i }}
          valueFrom:
            secretKeyRef:
              name: {{ $header.secret }}
              key: {{ $header.key | quote }}
        {{- end }}
        {{- with .Values.env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      envFrom:
        - configMapRef:
            name: {{ $name }}-settings
        {{- if .Values.backend.authorization }}
        - secretRef:
            name: {{ $name }}-backend
        {{- end }}
      ports:
        - name: health
          containerPort: 13133
        - name: ready
          containerPort: 13134
        - name: metrics
          containerPort: 8888
        {{- if include "otelcol-vllm.scrape" . }}
        - name: vllm
          containerPort: 9464
        {{- end }}
        {{- if .Values.probes }}
        - name: fleet
          containerPort: 55690
        {{- end }}
      # The start includes the check and the compaction of the files on disk. It may take five
      # minutes before the liveness probe begins.
      startupProbe:
        httpGet:
          path: /
          port: health
        periodSeconds: 5
        failureThreshold: 60
      livenessProbe:
        httpGet:
          path: /
          port: health
        periodSeconds: 15
        timeoutSeconds: 5
        failureThreshold: 4
      readinessProbe:
        httpGet:
          path: /
          port: ready
        periodSeconds: 10
        timeoutSeconds: 5
      resources:
        {{- include "otelcol-vllm.resources" . | nindent 8 }}
      securityContext:
        {{- toYaml .Values.securityContext | nindent 8 }}
      volumeMounts:
        - name: shared
          mountPath: /etc/otelcol-vllm/shared
          readOnly: true
        - name: own
          mountPath: /etc/otelcol-vllm/own
          readOnly: true
        - name: queue
          mountPath: /var/lib/otelcol-vllm
        {{- if $token }}
        - name: token
          mountPath: /var/run/secrets/otelcol-vllm
          readOnly: true
        {{- end }}
        {{- with .Values.volumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: shared
      configMap:
        name: {{ include "otelcol-vllm.fullname" . }}-shared
    - name: own
      configMap:
        name: {{ $name }}
    {{- if eq .Values.mode "gateway" }}
    - name: queue
      persistentVolumeClaim:
        claimName: {{ $name }}
    {{- else if .Values.queue.hostPath }}
    - name: queue
      hostPath:
        path: {{ .Values.queue.hostPath }}
        # Not DirectoryOrCreate: the kubelet would make it as root, and the collector, which
        # is not root, could not write.
        type: Directory
    {{- else if eq .Values.mode "agent" }}
    # Outlives a crash of the container, not the pod.
    - name: queue
      emptyDir:
        sizeLimit: 1Gi
    {{- end }}
    {{- if $token }}
    # For the picker. Expires after an hour; the kubelet renews it long before.
    - name: token
      projected:
        defaultMode: 0440
        sources:
          - serviceAccountToken:
              path: token
              expirationSeconds: 3600
    {{- end }}
    {{- with .Values.volumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

{{/* What a volume claim asks for. */}}
{{- define "otelcol-vllm.claim" -}}
accessModes: [ReadWriteOnce]
{{- with .Values.queue.storageClass }}
storageClassName: {{ . }}
{{- end }}
resources:
  requests:
    storage: {{ .Values.queue.size }}
{{- end }}
