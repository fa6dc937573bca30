"""Child registries of mmssl: one for each kind of object that we register.

Each carries its parent's name and the scope ``mmssl``, so ``type='mmssl.FPLLoss'`` resolves in any OpenMMLab project,
whatever its ``default_scope``; mmengine imports ``locations`` the first time that the scope is asked for.
"""

from mmengine.registry import DATA_SAMPLERS as MMENGINE_DATA_SAMPLERS
from mmengine.registry import DATASETS as MMENGINE_DATASETS
from mmengine.registry import HOOKS as MMENGINE_HOOKS
from mmengine.registry import LOOPS as MMENGINE_LOOPS
from mmengine.registry import METRICS as MMENGINE_METRICS
from mmengine.registry import MODEL_WRAPPERS as MMENGINE_MODEL_WRAPPERS
from mmengine.registry import MODELS as MMENGINE_MODELS
from mmengine.registry import OPTIM_WRAPPER_CONSTRUCTORS as MMENGINE_OPTIM_WRAPPER_CONSTRUCTORS
from mmengine.registry import OPTIM_WRAPPERS as MMENGINE_OPTIM_WRAPPERS
from mmengine.registry import PARAM_SCHEDULERS as MMENGINE_PARAM_SCHEDULERS
from mmengine.registry import TASK_UTILS as MMENGINE_TASK_UTILS
from mmengine.registry import TRANSFORMS as MMENGINE_TRANSFORMS
from mmengine.registry import VISUALIZERS as MMENGINE_VISUALIZERS
from mmengine.registry import Registry

MODELS = Registry('model', parent=MMENGINE_MODELS, scope='mmssl', locations=['mmssl.models'])
MODEL_WRAPPERS = Registry('model_wrapper', parent=MMENGINE_MODEL_WRAPPERS, scope='mmssl', locations=['mmssl.models'])
DATASETS = Registry('dataset', parent=MMENGINE_DATASETS, scope='mmssl', locations=['mmssl.datasets'])
DATA_SAMPLERS = Registry('data sampler', parent=MMENGINE_DATA_SAMPLERS, scope='mmssl', locations=['mmssl.datasets'])
TRANSFORMS = Registry('transform', parent=MMENGINE_TRANSFORMS, scope='mmssl', locations=['mmssl.datasets'])
HOOKS = Registry('hook', parent=MMENGINE_HOOKS, scope='mmssl', locations=['mmssl.engine'])
LOOPS = Registry('loop', parent=MMENGINE_LOOPS, scope='mmssl', locations=['mmssl.engine'])
OPTIM_WRAPPERS = Registry('optim_wrapper', parent=MMENGINE_OPTIM_WRAPPERS, scope='mmssl', locations=['mmssl.engine'])
OPTIM_WRAPPER_CONSTRUCTORS = Registry(
    'optimizer wrapper constructor',
    parent=MMENGINE_OPTIM_WRAPPER_CONSTRUCTORS,
    scope='mmssl',
    locations=['mmssl.engine'])
PARAM_SCHEDULERS = Registry(
    'parameter scheduler', parent=MMENGINE_PARAM_SCHEDULERS, scope='mmssl', locations=['mmssl.engine'])
METRICS = Registry('metric', parent=MMENGINE_METRICS, scope='mmssl', locations=['mmssl.evaluation'])
VISUALIZERS = Registry('visualizer', parent=MMENGINE_VISUALIZERS, scope='mmssl', locations=['mmssl.visualization'])
TASK_UTILS = Registry('task util', parent=MMENGINE_TASK_UTILS, scope='mmssl', locations=['mmssl.models'])
