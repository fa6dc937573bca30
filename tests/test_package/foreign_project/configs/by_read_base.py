# mmengine's other style of config: plain Python, with classes for types, and mmssl's method leaves among its bases.
from mmengine.config import read_base
from own_project import OwnSemiSegmentor

from mmssl.models.data_preprocessors import MultiBranchDataPreprocessor

with read_base():
    from mmssl.configs._base_.methods.fpl import *

    from ._base_.datasets.own_semi import *
    from ._base_.default_runtime import *
    from ._base_.models.fcn_own import *
    from ._base_.schedules.schedule_2 import *

model.update(type=OwnSemiSegmentor, unsup_loss=dict(fpl_loss, loss_weight=0.5))
model.data_preprocessor = dict(type=MultiBranchDataPreprocessor, data_preprocessor=data_preprocessor)
